import { writeFile } from 'node:fs/promises'
import type { IncomingHttpHeaders } from 'node:http'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import {
  HTTPSOverlayBroadcastFacilitator,
  HTTPSOverlayLookupFacilitator,
  LookupResolver,
  PrivateKey,
  TopicBroadcaster,
  Transaction,
} from '@bsv/sdk'
import { useBuiltCli } from '../../support/cli/built-cli.js'
import { arcServer, walletServer } from '../../support/mining/miners-services.js'
import { TestWallet } from '../../support/mining/test-wallet.js'
import { statesIn } from '../../support/payments/journals.js'
import { beefOf, FakeChain } from '../../support/protocol/fake-chain.js'
import { coinsFor } from '../../support/protocol/transactions.js'
import { serving } from '../../support/server/connections.js'
import { posted, type TestServer, treeOf, useServers } from '../../support/server/test-server.js'
import { freePort } from '../../support/services/free-port.js'

// `minetree advertise` as an operator runs it, and the SDK's clients as they find the host by it.

const cli = useBuiltCli()
const servers = useServers()

const ALL = ['SHIP tm_names', 'SHIP tm_ordinals', 'SLAP ls_names', 'SLAP ls_ordinals', 'SLAP ls_ship']
const hostKey = new PrivateKey(31)
const payer = new PrivateKey(21)

/** A host with a tree, its settings, and what `advertise` is called with. */
async function host(chain = new FakeChain()) {
  const port = String(await freePort())
  const env = {
    ...treeOf(chain.deployment),
    PORT: port,
    DATA_DIR: await servers.folder(),
    HOSTING_URL: `http://127.0.0.1:${port}`,
    SERVER_PRIVATE_KEY: hostKey.toHex(),
  }
  const server = await servers.start(env)
  await server.take(beefOf(chain.genesis))
  const data = await servers.folder()
  const args = ['advertise', '--url', server.url]
  return { chain, env: { ...env, XDG_DATA_HOME: data }, server, data, args }
}

/** A key with coins, as arguments. */
async function purse(...values: number[]): Promise<string[]> {
  const folder = await servers.folder()
  const [keyFile, coins] = [join(folder, 'key.wif'), join(folder, 'coins.beef')]
  await writeFile(keyFile, `${payer.toWif()}\n`)
  await writeFile(coins, Uint8Array.from(coinsFor(payer, ...values).toBEEF()))
  return ['--key-file', keyFile, '--coins', coins]
}

const namesIn = (stdout: string): string[] =>
  stdout
    .trim()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.replace(/ [0-9a-f]{64}_\d+$/, ''))

/** Of a request, what the server behind a proxy needs. */
const passed = (headers: IncomingHttpHeaders): Record<string, string> =>
  Object.fromEntries(
    ['content-type', 'x-topics', 'x-advertisement'].flatMap((name) =>
      typeof headers[name] === 'string' ? [[name, headers[name]]] : [],
    ),
  )

/** How many tokens the server finds. */
async function found(server: TestServer, query: unknown = 'findAll'): Promise<number> {
  const counts = await Promise.all(
    ['ls_ship', 'ls_slap'].map(async (service) => {
      const { json } = await server.ask('/lookup', posted({ service, query }))
      return (json as { outputs: unknown[] }).outputs.length
    }),
  )
  return counts.reduce((sum, count) => sum + count, 0)
}

test('the clients of the SDK find the host that has advertised itself, with it as their tracker', async () => {
  const { chain, env, server, args } = await host()
  const { code, stdout, stderr } = await cli.call(args, env)
  expect({ code, stderr, names: namesIn(stdout) }).toEqual({
    code: 0,
    stderr: expect.stringContaining('satoshis of fees'),
    names: ALL,
  })
  const resolver = new LookupResolver({
    slapTrackers: [server.url],
    facilitator: new HTTPSOverlayLookupFacilitator(undefined, true),
  })
  const broadcaster = new TopicBroadcaster(['tm_names'], {
    resolver,
    facilitator: new HTTPSOverlayBroadcastFacilitator(undefined, true),
  })
  const mint = chain.mint('a')
  const sent = await broadcaster.broadcast(Transaction.fromBEEF(Array.from(beefOf(mint))))
  expect(sent).toMatchObject({ status: 'success', txid: mint.txid })
  const { outputs } = await resolver.query({ service: 'ls_names', query: { name: 'a' } })
  expect(outputs).toHaveLength(1)
})

describe('with a key', () => {
  test('pays once, however often it is run and whoever restarts', async () => {
    const { env, server, data, args } = await host()
    const money = await purse(5000)
    const first = await cli.run([...args, ...money, '--yes', '--json'], env)
    expect(first).toMatchObject({ code: 0 })
    const { txid, fee, advertised } = JSON.parse(first.stdout)
    expect(advertised.map((each: { outpoint: string }) => each.outpoint)).toEqual(
      ALL.map((_, vout) => `${txid}_${vout}`),
    )
    expect(fee).toBeGreaterThan(0)
    expect(fee).toBeLessThan(300)
    const again = await cli.call([...args, ...money, '--yes'], env)
    expect(again).toMatchObject({ code: 0, stderr: expect.stringContaining('nothing was paid') })
    // Another journal: the server knows.
    const other = { ...env, XDG_DATA_HOME: await servers.folder() }
    const elsewhere = await cli.call([...args, ...money, '--yes'], other)
    expect(elsewhere).toMatchObject({ code: 0, stderr: expect.stringContaining('nothing was paid') })
    await server.stop()
    // An empty store: the journal knows.
    const empty = await servers.start({ ...env, DATA_DIR: await servers.folder() })
    expect(await found(empty)).toBe(0)
    const told = await cli.call([...args, ...money, '--yes'], env)
    expect(told).toMatchObject({ code: 0, stderr: expect.stringContaining('nothing was paid') })
    expect(namesIn(told.stdout)).toEqual(ALL)
    expect(await found(empty)).toBe(5)
    expect(statesIn(data)).toEqual(['admitted'])
  })

  test('replaces the tokens of another URL in one transaction, and revokes them all on request', async () => {
    const { env, server, data, args } = await host()
    const money = await purse(5000)
    expect((await cli.call([...args, ...money, '--yes'], env)).code).toBe(0)
    await server.stop()
    const moved = { ...env, HOSTING_URL: 'http://host.example' }
    const next = await servers.start(moved)
    expect(await found(next)).toBe(0)
    const { code, stdout } = await cli.call([...args, ...money, '--yes'], moved)
    expect({ code, names: namesIn(stdout) }).toEqual({
      code: 0,
      names: expect.arrayContaining([...ALL, ...ALL.map((each) => `revoked ${each}`)]),
    })
    expect(await found(next)).toBe(5)
    expect(await found(next, { domain: env.HOSTING_URL })).toBe(0)
    const revoked = await cli.call([...args, ...money, '--yes', '--revoke'], moved)
    expect({ code: revoked.code, names: namesIn(revoked.stdout).sort() }).toEqual({
      code: 0,
      names: ALL.map((each) => `revoked ${each}`),
    })
    expect(await found(next, { identityKey: hostKey.toPublicKey().toString() })).toBe(0)
    const nothing = await cli.call([...args, ...money, '--yes', '--revoke'], moved)
    expect(nothing).toMatchObject({
      code: 0,
      stdout: '',
      stderr: expect.stringContaining('nothing was paid'),
    })
    expect(statesIn(data)).toHaveLength(3)
  })

  test('is stored before it is sent, sent again until the network decides, and submitted to nobody before that', async () => {
    const { env, server, data, args } = await host()
    const arc = await arcServer()
    arc.says = 'SEEN_IN_ORPHAN_MEMPOOL'
    const line = [...args, ...(await purse(5000)), '--yes', '--arc', arc.url]
    const undecided = await cli.call(line, env)
    expect(undecided).toMatchObject({
      code: 5,
      stderr: expect.stringContaining('run the same command again'),
    })
    expect(statesIn(data)).toEqual(['pending'])
    expect(await found(server)).toBe(0)
    arc.says = 'SEEN_ON_NETWORK'
    expect(await cli.call(line, env)).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('nothing was paid'),
    })
    expect(arc.received.map((each) => each.id('hex'))).toEqual(
      Array.from({ length: 2 }, () => arc.received[0]?.id('hex')),
    )
    expect(await found(server)).toBe(5)
    expect(statesIn(data)).toEqual(['admitted'])
  })

  test('what was paid for stays known, whatever a proxy before the server answers', async () => {
    const { env, server, data, args } = await host()
    const line = [...args, ...(await purse(5000)), '--yes']
    expect((await cli.call(line, env)).code).toBe(0)
    const statuses = [502, 404]
    const proxy = await serving(async (request, response) => {
      const body = await buffer(request)
      const { url = '', method = 'GET', headers } = request
      const asked = { method, headers: { 'Content-Type': headers['content-type'] ?? '' }, body }
      const answer =
        url === '/submit' ? { status: statuses.shift() ?? 0, body: '' } : await server.ask(url, asked)
      response.writeHead(answer.status).end(answer.body)
    })
    for (const _ of [502, 404]) {
      expect(await cli.call([...line, '--url', proxy.url], env)).toMatchObject({ code: 5 })
      expect(statesIn(data)).toEqual(['admitted'])
    }
    expect((await cli.call([...line, '--revoke'], env)).code).toBe(0)
    expect(await found(server)).toBe(0)
  })

  test('what another transaction replaces where no network is asked is lost, and other coins pay', async () => {
    const { env, server, args } = await host()
    const spent = await purse(5000)
    expect((await cli.call([...args, ...spent, '--yes'], env)).code).toBe(0)
    const data = await servers.folder()
    const elsewhere = { ...env, XDG_DATA_HOME: data }
    const line = [...args, '--yes', '--revoke']
    expect(await cli.call([...line, ...spent], elsewhere)).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('conflicts with'),
    })
    expect(statesIn(data)).toEqual(['lost'])
    expect((await cli.call([...line, ...(await purse(6000))], elsewhere)).code).toBe(0)
    expect(await found(server)).toBe(0)
  })

  test('is not paid for again because a server denies it, and is on request once tokens were revoked elsewhere', async () => {
    const { env, server, data, args } = await host()
    const arc = await arcServer()
    const line = [...args, ...(await purse(5000)), '--yes', '--arc', arc.url]
    const nothing = JSON.stringify({ type: 'output-list', outputs: [] })
    const answers: Record<string, { status: number; body: string | Buffer }> = {}
    const denying = await serving(async (request, response) => {
      const body = await buffer(request)
      const { url = '', method = 'GET', headers } = request
      const answer =
        answers[url] ?? (await server.ask(url, { method, headers: passed(headers), body: Buffer.from(body) }))
      response.writeHead(answer.status).end(answer.body)
    })
    const denied = [...line, '--url', denying.url]
    answers['/lookup'] = { status: 200, body: nothing }
    for (const _ of [1, 2, 3, 4])
      expect(await cli.call(denied, env)).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('use --again to pay again'),
      })
    answers['/submit'] = { status: 409, body: JSON.stringify({ error: 'no', txid: 'ab'.repeat(32) }) }
    for (const _ of [1, 2]) expect(await cli.call(denied, env)).toMatchObject({ code: 5 })
    expect(statesIn(data)).toEqual(['admitted'])
    expect(new Set(arc.received.map((each) => each.id('hex'))).size).toBe(1)

    const elsewhere = { ...env, XDG_DATA_HOME: await servers.folder() }
    const revoking = [...args, ...(await purse(7000)), '--yes', '--arc', arc.url, '--revoke']
    expect((await cli.call(revoking, elsewhere)).code).toBe(0)
    expect(await found(server)).toBe(0)
    expect(await cli.call(line, env)).toMatchObject({ code: 1 })
    expect(await cli.call([...line, '--again'], env)).toMatchObject({ code: 0 })
    expect(await found(server)).toBe(5)
    expect(statesIn(data)).toEqual(['admitted', 'admitted'])
  })

  test('what the network rejects is paid for anew', async () => {
    const { env, server, data, args } = await host()
    const arc = await arcServer()
    arc.says = 'REJECTED'
    const line = [...args, ...(await purse(5000)), '--yes', '--arc', arc.url]
    expect(await cli.call(line, env)).toMatchObject({ code: 4 })
    expect(statesIn(data)).toEqual(['lost'])
    arc.says = 'MINED'
    expect((await cli.call([...line, '--fee-rate', '101'], env)).code).toBe(0)
    expect(await found(server)).toBe(5)
  })
})

test('a wallet pays, signs first, and sends what is stored', async () => {
  const { env, server, data, args } = await host()
  const wallet = new TestWallet(coinsFor(new PrivateKey(7), 100_000))
  const { url } = await walletServer(wallet)
  const line = [...args, '--wallet', url, '--yes', '--max-fee', '5000']
  const first = await cli.call(line, env)
  expect({ ...first, names: namesIn(first.stdout) }).toMatchObject({ code: 0, names: ALL })
  expect(wallet.sent).toHaveLength(1)
  expect(await found(server)).toBe(5)
  const { code, stdout } = await cli.call([...line, '--revoke'], env)
  expect({ code, names: namesIn(stdout).sort() }).toEqual({
    code: 0,
    names: ALL.map((each) => `revoked ${each}`),
  })
  expect(wallet.sent).toHaveLength(2)
  expect(await found(server)).toBe(0)
  expect(statesIn(data)).toEqual(['admitted', 'admitted'])
})

describe('pays nothing', () => {
  test('without agreement, without settings, over the limit, or without coins', async () => {
    const { env, server, data, args } = await host()
    const money = await purse(5000)
    const { SERVER_PRIVATE_KEY, ...unnamed } = env
    const refusals: [string[], Record<string, string>, number, RegExp][] = [
      [money, env, 2, /nothing was paid: add --yes/],
      [[...money, '--yes'], unnamed, 2, /set SERVER_PRIVATE_KEY and HOSTING_URL/],
      [[...money, '--yes', '--max-fee', '10'], env, 4, /would be \d+ satoshis; at most 10 are allowed/],
      [[...(await purse(20)), '--yes'], env, 1, /20 satoshis are not enough for the advertisements/],
      [[...money, '--wallet', 'http://127.0.0.1:1', '--yes'], env, 2, /either --wallet or --key-file/],
    ]
    for (const [more, settings, code, stderr] of refusals)
      expect(await cli.call([...args, ...more], settings)).toMatchObject({
        code,
        stderr: expect.stringMatching(stderr),
      })
    expect(await found(server)).toBe(0)
    expect(statesIn(data)).toEqual([])
  })

  test('for a URL of a live network that no client would use', async () => {
    const urls = ['http://names.example', 'https://localhost', 'https://names.example/path']
    const more = ['https://me:secret@names.example', 'https://names.example/#', 'HTTPS://names.example']
    for (const url of [...urls, ...more]) {
      const env = { PROFILE: 'mainnet', HOSTING_URL: url, SERVER_PRIVATE_KEY: hostKey.toHex() }
      expect(await cli.call(['advertise', '--yes'], env)).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(
          url.includes('@')
            ? 'must have no user and no password'
            : 'must be https:// with a public host name and nothing else',
        ),
      })
    }
  })

  test('to a server of the live network with the settings of a local one', async () => {
    const { env, data, args } = await host()
    const live = { ...env, PROFILE: 'mainnet', CHAIN_TRACKER: 'scripts-only', PORT: '0' }
    const other = await servers.start({ ...live, DATA_DIR: await servers.folder() })
    expect(await cli.call([...args, '--yes', '--url', other.url], env)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`PROFILE is local, and ${other.url} has mainnet`),
    })
    expect(statesIn(data)).toEqual([])
  })

  test.each([
    ['URL', { HOSTING_URL: 'http://elsewhere.example' }, 'HOSTING_URL is http://elsewhere.example, and'],
    ['key', { SERVER_PRIVATE_KEY: payer.toHex() }, 'SERVER_PRIVATE_KEY is not the key of'],
  ])('to a server with another %s', async (_, setting, message) => {
    const { env, data, args } = await host()
    const line = [...args, ...(await purse(5000)), '--yes']
    expect(await cli.call(line, { ...env, ...setting })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(message),
    })
    expect(statesIn(data)).toEqual([])
  })

  test('to a server without discovery', async () => {
    const { env, args } = await host()
    const other = await servers.start(treeOf(new FakeChain().deployment))
    const line = [...args, ...(await purse(5000)), '--yes', '--url', other.url]
    expect(await cli.call(line, env)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('has no ls_ship'),
    })
  })
})

test('trackers are told, and one that does not answer is a warning', async () => {
  const { env, args } = await host()
  const tracker = await servers.start({ ...env, PORT: '0', DATA_DIR: await servers.folder() })
  const line = [...args, ...(await purse(5000)), '--yes', '--tracker', tracker.url, 'http://127.0.0.1:2']
  const { code, stdout, stderr } = await cli.call(line, env)
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining('http://127.0.0.1:2') })
  const outpoints = stdout.match(/[0-9a-f]{64}_\d+/g) ?? []
  expect(outpoints).toHaveLength(5)
  for (const outpoint of outpoints) expect((await tracker.ask(`/svc/txo/${outpoint}`)).status).toBe(200)
})
