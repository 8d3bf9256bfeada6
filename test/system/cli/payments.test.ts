import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PrivateKey, type Transaction } from '@bsv/sdk'
import { p2pkhLockOf } from '../../../src/payments/key.js'
import { type Ended, useBuiltCli } from '../../support/cli/built-cli.js'
import { arcServer } from '../../support/mining/miners-services.js'
import { paymentsIn, statesIn } from '../../support/payments/journals.js'
import { beefOf, FakeChain } from '../../support/protocol/fake-chain.js'
import { coinsFor } from '../../support/protocol/transactions.js'
import { type TestServer, treeOf, useServers } from '../../support/server/test-server.js'
import { until } from '../../support/server/waiting.js'
import { freePort } from '../../support/services/free-port.js'

// Several commands with one key: processes of their own, with one journal.

const cli = useBuiltCli()
const servers = useServers()
const key = new PrivateKey(61)
const hostKey = new PrivateKey(62)

/** A host with names of the key, a miner, and a journal. */
async function scene({ names = ['a'], coins = [5000] }: { names?: string[]; coins?: number[] } = {}) {
  const chain = new FakeChain()
  const port = String(await freePort())
  const env = {
    ...treeOf(chain.deployment),
    ...{ PORT: port, DATA_DIR: await servers.folder(), SERVER_PRIVATE_KEY: hostKey.toHex() },
    HOSTING_URL: `http://127.0.0.1:${port}`,
  }
  const server = await servers.start(env)
  await server.submit(beefOf(chain.genesis))
  const ownerLock = p2pkhLockOf(key.toPublicKey())
  for (const name of names)
    await server.submit(beefOf(chain.mint(name, { ownerLock })), ['tm_names', 'tm_ordinals'])
  const arc = await arcServer()
  const folder = await servers.folder()
  const [keyFile, coinFile] = [join(folder, 'key.wif'), join(folder, 'coins.beef')]
  await writeFile(keyFile, key.toWif())
  await writeFile(coinFile, Uint8Array.from(coinsFor(key, ...coins).toBEEF()))
  const paying = ['--url', server.url, '--key-file', keyFile, '--coins', coinFile, '--yes']
  const at = async (data: string, ...args: string[]): Promise<Ended> =>
    await cli.call([...args, ...paying], { ...env, XDG_DATA_HOME: data, XDG_CONFIG_HOME: data })
  return { chain, server, arc, env, paying, at, data: await servers.folder() }
}

const spentIn = (transactions: Iterable<Transaction>): string[] =>
  [...new Map([...transactions].map((each) => [each.id('hex'), each])).values()].flatMap(({ inputs }) =>
    inputs.map(({ sourceTXID, sourceOutputIndex }) => `${sourceTXID}_${sourceOutputIndex}`),
  )

const isAdmitted = async (server: TestServer, txid: string): Promise<boolean> =>
  (await server.ask(`/svc/txo/${txid}_0`)).status === 200

test('commands that pay with one key at the same time spend no coin twice, and each succeeds', async () => {
  const names = ['c', 'd', 'e']
  const { at, arc, data, server } = await scene({ names, coins: [3000, 3000, 3000, 3000, 3000] })
  const ends = await Promise.all([
    ...names.map((name) => at(data, 'unbind', name).then(() => at(data, 'bind', name, '--arc', arc.url))),
    at(data, 'advertise', '--arc', arc.url),
    at(data, 'transfer', 'a', key.toAddress(), '--arc', arc.url),
  ])
  expect(ends.slice(0, 4).map(({ code, stderr }) => ({ code, stderr }))).toEqual(
    ends.slice(0, 4).map(() => ({ code: 0, stderr: expect.stringContaining('paid') })),
  )
  const spent = spentIn(arc.received)
  expect(new Set(spent).size).toBe(spent.length)
  const paid = paymentsIn(data)
  expect(paid).toHaveLength(4)
  for (const { txid } of paid) expect(await isAdmitted(server, txid)).toBe(true)
})

test('the same change of a name that two commands make at once is paid for once', async () => {
  const { at, arc, data } = await scene({ coins: [3000, 3000] })
  const ends = await Promise.all([1, 2].map(() => at(data, 'bind', 'a', '--arc', arc.url)))
  expect(ends.map(({ code }) => code).sort()).toContain(0)
  const spent = spentIn(arc.received)
  expect(new Set(spent).size).toBe(spent.length)
})

test('a change of a name that was made is not paid for again', async () => {
  const { at, data } = await scene()
  const changes = [
    ['bind', 'a', '--display-name', 'Ann', '--domain', 'a.example'],
    ['bind', 'a', '--display-name', 'Anna'],
    ['transfer', 'a', hostKey.toAddress()],
  ]
  for (const [made, change] of changes.entries()) {
    const { code, stdout } = await at(data, ...change)
    expect(code).toBe(0)
    expect(await at(data, ...change)).toMatchObject({ code: 0, stdout })
    expect(statesIn(data)).toHaveLength(made + 1)
  }
})

test('the payments of one command are understood by the others, and its change pays for theirs', async () => {
  const { at, arc, data } = await scene()
  for (const args of [['advertise'], ['bind', 'a'], ['unbind', 'a'], ['advertise', '--revoke']])
    expect(await at(data, ...args, '--arc', arc.url)).toMatchObject({ code: 0 })
  expect(paymentsIn(data).map(({ kind }) => kind)).toEqual(['advertise', 'move', 'move', 'advertise'])
  // The coin, and then the change of the one before.
  expect(spentIn(arc.received).filter((each) => each.endsWith('_0')).length).toBeGreaterThan(0)
  const listed = await cli.call(['payments', '--json'], { XDG_DATA_HOME: data })
  expect(
    listed.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).kind),
  ).toHaveLength(4)
})

describe('a move that lost to another transaction ends as lost, and other coins pay for the next', () => {
  /** Signs a move, and ends the command before anybody has answered; then another machine spends the coin. */
  async function outrun({ at, arc, env, paying, data }: Awaited<ReturnType<typeof scene>>, asked: string[]) {
    arc.says = 'no answer'
    const running = cli.start(['bind', 'a', ...paying, '--arc', arc.url], {
      ...env,
      XDG_DATA_HOME: data,
      XDG_CONFIG_HOME: data,
    })
    await until(() => arc.received.length > 0)
    running.child.kill('SIGKILL')
    await running.ended
    expect(statesIn(data)).toEqual(['pending'])
    arc.says = 'SEEN_ON_NETWORK'
    const elsewhere = await servers.folder()
    expect(await at(elsewhere, 'advertise', ...asked)).toMatchObject({ code: 0 })
    return paymentsIn(elsewhere)[0]?.txid ?? ''
  }

  test.each([
    ['without a network', [], 'SEEN_ON_NETWORK'],
    ['where the network rejects it', ['--arc'], 'REJECTED'],
  ])('%s', async (_, network, says) => {
    const made = await scene({ coins: [5000, 4000] })
    const { at, arc, data } = made
    const asked = network.flatMap((option) => [option, arc.url])
    const other = await outrun(made, asked)
    const [move] = paymentsIn(data)
    arc.says = (transaction) => (transaction.id('hex') === move?.txid ? says : 'SEEN_ON_NETWORK')
    const first = await at(data, 'bind', 'a', ...asked)
    expect(first.stderr).toContain(`a (${move?.txid}) is lost, and its coins are free`)
    if (network.length === 0) expect(first.stderr).toContain(`conflicts with ${other}`)
    expect(first).toMatchObject({ code: 0, stderr: expect.stringContaining('paid') })
    expect(statesIn(data)).toEqual(['lost', 'admitted'])
    const sent = arc.received.length
    expect(await at(data, 'unbind', 'a', ...asked)).toMatchObject({ code: 0 })
    expect(arc.received.slice(sent).map((each) => each.id('hex'))).not.toContain(move?.txid)
  })
})

test('a payment that nobody will mine can be given up', async () => {
  const { at, arc, data } = await scene({ coins: [3000] })
  arc.says = 'SEEN_IN_ORPHAN_MEMPOOL'
  for (const _ of [1, 2]) expect(await at(data, 'bind', 'a', '--arc', arc.url)).toMatchObject({ code: 5 })
  const [stuck] = paymentsIn(data)
  const env = { XDG_DATA_HOME: data }
  expect(await cli.call(['payments', '--lose', 'ab'.repeat(32)], env)).toMatchObject({ code: 3 })
  const { stdout } = await cli.call(['payments', '--lose', stuck?.txid ?? ''], env)
  expect(stdout).toBe(`${stuck?.txid} lost move a ${stuck?.fee}\n`)
  arc.says = 'SEEN_ON_NETWORK'
  expect(await at(data, 'bind', 'a', '--arc', arc.url)).toMatchObject({ code: 0 })
  // The same coin pays, so it is the same transaction.
  expect(paymentsIn(data)).toMatchObject([{ txid: stuck?.txid, isAdmitted: true }])
})

test('commands that resolve names at the same time remember the key of each', async () => {
  const names = [...'bcd']
  const { chain, at, data, server, env } = await scene({ names: ['a', ...names] })
  const remembered = async (): Promise<Record<string, Record<string, string>>> =>
    JSON.parse(await readFile(join(data, 'minetree/known-identities.json'), 'utf8'))
  for (const name of names) expect(await at(data, 'bind', name)).toMatchObject({ code: 0 })
  const ends = await Promise.all(
    names.map((name) => cli.run(['resolve', name, '--url', server.url], { ...env, XDG_CONFIG_HOME: data })),
  )
  expect(ends.map(({ code }) => code)).toEqual(names.map(() => 0))
  const [known] = Object.values(await remembered())
  expect(Object.keys(known ?? {}).sort()).toEqual(names)
  expect(Object.keys(await remembered())).toEqual([`${chain.genesis.txid}_0`])
})
