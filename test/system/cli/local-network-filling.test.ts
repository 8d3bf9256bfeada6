import { formatOutpoint, parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { fundedTransaction } from '../../../src/cli/fake-transactions.js'
import { fill, filledWith, type LocalNetwork } from '../../../src/cli/local-network/fill.js'
import { resolveName } from '../../../src/client/resolve.js'
import { mineName } from '../../../src/mining/mine-name.js'
import { NOBODY_LOCK } from '../../../src/payments/fake.js'
import { FAKE_MINT_PAYER } from '../../../src/payments/mints.js'
import { emptyLocalNetwork, networkOf } from '../../support/cli/local-network.js'
import { p2pkh } from '../../support/protocol/fake-chain.js'
import { type TestServer, useServers } from '../../support/server/test-server.js'

const servers = useServers()

/** Mines a name as somebody else would. */
async function mineFor(network: LocalNetwork, name: string, ownerLock: Uint8Array): Promise<void> {
  const { deployment, index } = network
  await mineName({
    ...{ name, deployment, index, pay: FAKE_MINT_PAYER.pay, workers: 0 },
    chainTracker: 'scripts only',
    ownerLock: async () => ownerLock,
  })
}

const sequenceOf = async (server: TestServer, name: string): Promise<unknown> =>
  ((await server.ask(`/svc/names/${name}`)).json as { sequence: number }).sequence

const counted = (rows: Record<string, string[]>): Record<string, number> =>
  Object.fromEntries(Object.entries(rows).map(([table, { length }]) => [table, length]))

/** The network, which is broken off as soon as the server has taken something; `taken` counts that. */
function brittle(server: TestServer): { network: LocalNetwork; taken(): number } {
  const { index, submit, ...sound } = networkOf(server)
  let taken = 0
  const breaking = async (submitted: Promise<unknown>): Promise<never> => {
    await submitted
    taken++
    throw new Error('broken off')
  }
  return {
    taken: () => taken,
    network: {
      ...sound,
      submit: (submitted) => breaking(submit(submitted)),
      index: {
        liveNode: (name) => index.liveNode(name),
        showNode: (name, known) => index.showNode(name, known),
        showName: (name, known) => index.showName(name, known),
        submit: (mint) => breaking(index.submit(mint)),
      },
    },
  }
}

test('a filling that breaks off at each of its steps comes to what an undisturbed one comes to', async () => {
  const server = await emptyLocalNetwork(servers)
  const { network, taken } = brittle(server)
  // Five chunks, six mints, an identity, a site.
  for (let steps = 1; steps <= 13; steps++) {
    await expect(fill(network)).rejects.toThrow('broken off')
    expect(taken()).toBe(steps)
    expect(await filledWith(network)).toBeUndefined()
  }
  expect((await fill(network)).name).toBe('home')
  expect(taken()).toBe(13)
  const undisturbed = await emptyLocalNetwork(servers)
  await fill(networkOf(undisturbed))
  expect(counted(server.rows())).toEqual(counted(undisturbed.rows()))
})

test('what is filled is filled once', async () => {
  const server = await emptyLocalNetwork(servers)
  const network = networkOf(server)
  const filled = await fill(network)
  const resolved = await resolveName({
    ...{ name: 'hum', deployment: network.deployment, sources: [server.url] },
    chainTracker: 'scripts only',
  })
  expect(resolved.identity).toMatchObject({ state: 'bound', profile: { name: 'Hum' } })
  const rows = server.rows()
  expect(await fill(network)).toEqual(filled)
  expect(server.rows()).toEqual(rows)
})

test('it ends when it is cancelled', async () => {
  const server = await emptyLocalNetwork(servers, { DIFFICULTY: '32' })
  const stop = new AbortController()
  const filling = fill(networkOf(server, { signal: stop.signal }))
  const reason = new Error('enough')
  stop.abort(reason)
  await expect(filling).rejects.toBe(reason)
})

describe('names that somebody has taken meanwhile', () => {
  test('are left to their owners', async () => {
    const server = await emptyLocalNetwork(servers)
    const network = networkOf(server)
    for (const name of ['home', 'hum']) await mineFor(network, name, p2pkh(7))
    expect(await fill(network)).toMatchObject({ name: 'home2' })
    expect(await sequenceOf(server, 'home')).toBe(0)
    expect(await sequenceOf(server, 'hum')).toBe(0)
    expect(await sequenceOf(server, 'home2')).toBe(1)
  })

  test('are left to those who have moved them', async () => {
    const server = await emptyLocalNetwork(servers)
    const network = networkOf(server)
    await mineFor(network, 'home', NOBODY_LOCK)
    const { outpoint } = (await server.ask('/svc/names/origin/home')).json as { outpoint: string }
    const ordinal = { ...parseOutpoint(outpoint), height: 6 }
    const moved = fundedTransaction([{ satoshis: 1, lockingScript: NOBODY_LOCK }], undefined, ordinal)
    await network.submit({ beef: moved.beef, topics: ['tm_ordinals'] })
    expect(await fill(network)).toMatchObject({ name: 'home2' })
    const { json } = await server.ask('/svc/names/home')
    expect(json).toMatchObject({
      sequence: 1,
      tip: { outpoint: formatOutpoint({ txid: moved.txid, vout: 0 }) },
    })
  })

  test('are used where nobody owns them', async () => {
    const network = networkOf(await emptyLocalNetwork(servers))
    await mineFor(network, 'home', NOBODY_LOCK)
    expect(await fill(network)).toMatchObject({ name: 'home' })
  })

  test('leave none for the site when they are all somebody’s', async () => {
    const server = await emptyLocalNetwork(servers)
    const network = networkOf(server)
    for (const name of ['home2', 'home3']) await mineFor(network, name, p2pkh(7))
    await expect(fill(network)).rejects.toThrow('somebody has each of home, home2, home3')
    expect(await filledWith(network)).toBeUndefined()
  })
})

test('a site that is not taken whole is none, however often it is tried', async () => {
  const taken = ['audio/wav', 'gw/stream', 'application/name-claim', 'gw-fs/json', 'text/html']
  const server = await emptyLocalNetwork(servers, { CONTENT_TYPES: taken.join() })
  for (const _ of ['first', 'again']) {
    await expect(fill(networkOf(server))).rejects.toThrow(/does not take 3 of \d+ outputs of the site/)
  }
  expect(await filledWith(networkOf(server))).toBeUndefined()
})

test('a server that indexes no ordinals of names is reported', async () => {
  const server = await emptyLocalNetwork(servers, { CONTENT_TYPES: 'audio/wav,gw/stream' })
  await expect(fill(networkOf(server))).rejects.toThrow('check its CONTENT_TYPES')
})
