import { toHex, utf8 } from '../../../../backend/src/protocol/bytes.js'
import { expectError } from '../../../support/gateway/expect-error.js'
import { beefOf, FakeChain, p2pkh } from '../../../support/protocol/fake-chain.js'
import { askNode, askOffered } from '../../../support/server/synced-world.js'
import { OPERATOR, type TestServer, treeOf, useServers } from '../../../support/server/test-server.js'

// What peers ask that sync with this host.

const { start } = useServers()

async function tree(): Promise<{ chain: FakeChain; server: TestServer }> {
  const chain = new FakeChain()
  const server = await start({ ...treeOf(chain.deployment), ...OPERATOR })
  await server.take(beefOf(chain.genesis))
  return { chain, server }
}

const BLOCKED = { status: 451, code: 'BLOCKED', overlay: true }
const outpoints = (offered: { txid: string; outputIndex: number }[]): string[] =>
  offered.map(({ txid, outputIndex }) => `${txid}_${outputIndex}`)

test('what is blocked is not offered, and leaves no page short', async () => {
  const { chain, server } = await tree()
  const notes = Array.from({ length: 8 }, (_, i) =>
    chain.inscribe({ contentType: 'text/plain', body: utf8(`note ${i}`) }),
  )
  for (const note of notes) await server.take(beefOf(note), ['tm_ordinals'])
  for (const note of notes.slice(0, 4)) await server.block({ outpoint: note.outpoint(0) })
  const a = chain.mint('a')
  await server.take(beefOf(a))
  await server.block({ name: 'a' })
  const left = notes.slice(4).map((note) => note.outpoint(0))
  expect(outpoints(await askOffered(server, { topic: 'tm_ordinals' }))).toEqual(left)
  expect(outpoints(await askOffered(server, { topic: 'tm_ordinals', limit: 3 }))).toEqual(left.slice(0, 3))
  expect(outpoints(await askOffered(server, { topic: 'tm_names' }))).toEqual([a.outpoint(0), a.outpoint(1)])
})

test('a transaction of a graph comes as it is, however long, with its merkle path', async () => {
  const { chain, server } = await tree()
  const body = new Uint8Array(300_000).map((_, i) => i % 251)
  const note = chain.inscribe({ contentType: 'text/plain', body })
  await server.take(beefOf(note), ['tm_ordinals'])
  const { status, json, headers, body: sent } = await askNode(server, { graph: note.outpoint(0) })
  expect([status, headers['content-length']]).toEqual([200, String(sent.length)])
  expect(json).toEqual({
    ...{ graphID: note.outpoint(0).replace('_', '.'), outputIndex: 0, rawTx: toHex(note.raw) },
    ...{ proof: expect.stringMatching(/^[0-9a-f]+$/), txMetadata: toHex(utf8('minetree  ')) },
  })
})

test('what was spent is given as evidence, though it is blocked; what stands there now is not', async () => {
  const { chain, server } = await tree()
  const note = chain.inscribe({ contentType: 'text/plain', body: utf8('a note') })
  const moved = chain.move(note, 0, p2pkh(5))
  const other = chain.inscribe({ contentType: 'text/plain', body: utf8('another') })
  for (const each of [note, moved, other]) await server.take(beefOf(each, { with: [note] }), ['tm_ordinals'])
  const [first, now] = [note.outpoint(0), moved.outpoint(0)]
  await server.block({ outpoint: first })
  expect((await askNode(server, { graph: now, outpoint: first })).status).toBe(200)
  expectError(await askNode(server, { graph: first }), BLOCKED)
  await server.block({ outpoint: now })
  for (const graph of [now, first, other.outpoint(0)])
    expectError(await askNode(server, { graph, outpoint: now }), BLOCKED)
})

test('an output that nothing here has admitted or spent is of no graph', async () => {
  const { chain, server } = await tree()
  const { genesis } = chain
  const stranger = chain.inscribe({ contentType: 'text/plain', body: utf8('a stranger') })
  const asked = [
    { graph: genesis.outpoint(0), outpoint: genesis.outpoint(1) },
    { graph: genesis.outpoint(0), outpoint: stranger.outpoint(0) },
    { graph: genesis.outpoint(1), outpoint: genesis.outpoint(0) },
    { graph: stranger.outpoint(0) },
  ]
  for (const each of asked)
    expectError(await askNode(server, each), { status: 404, code: 'NOT_FOUND', overlay: true })
})

test('a name is offered after it has moved, and what places an ordinal comes with its transaction', async () => {
  const { chain, server } = await tree()
  const a = chain.mint('a')
  await server.take(beefOf(a))
  const coin = chain.spend({ outputs: [{ satoshis: 7, lockingScript: p2pkh(1) }] })
  const moved = chain.spend({
    inputs: [coin, { transaction: a, vout: 2 }],
    outputs: [{ satoshis: 7, lockingScript: p2pkh(0) }, p2pkh(2)],
  })
  await server.take(beefOf(moved, { with: [coin, a] }), ['tm_ordinals'])
  expect(outpoints(await askOffered(server, { topic: 'tm_names' }))).toContain(a.outpoint(2))
  expect(outpoints(await askOffered(server, { topic: 'tm_ordinals' }))).toEqual([moved.outpoint(1)])
  const { json } = await askNode(server, { graph: moved.outpoint(1) })
  expect(json).toMatchObject({ txMetadata: toHex(utf8(`minetree 1 ${toHex(coin.raw)}`)) })
  // The coin is requested for its value alone.
  const change = await askNode(server, { graph: moved.outpoint(1), outpoint: coin.outpoint(0) })
  expect(change.json).toMatchObject({ txMetadata: toHex(utf8('minetree  ')) })
})
