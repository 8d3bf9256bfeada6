import { BEEF_V2, Beef, Transaction, Utils } from '@bsv/sdk'
import { expectError } from '../../../support/gateway/expect-error.js'
import { whileReplaced } from '../../../support/gateway/faults.js'
import { MineTree } from '../../../support/graph/mine-tree.js'
import { beefOf, type FakeTransaction, p2pkh } from '../../../support/protocol/fake-chain.js'
import { posted, type TestServer, treeOf, useServers } from '../../../support/server/test-server.js'

const servers = useServers()
const tree = new MineTree()
const { chain } = tree
const { genesis } = chain

/** What pays for the mint of `ab`, and for a later transfer of it, with a coin before the name. */
const [purse, fee] = [1000, 40].map((satoshis) =>
  chain.spend({ outputs: [{ satoshis, lockingScript: p2pkh(0) }] }),
) as [FakeTransaction, FakeTransaction]
const a = tree.mint('a')
const b = tree.mint('b')
const ab = tree.mint('ab', { funding: [purse] })
const abc = tree.mint('abc')
const moved = chain.move(ab, 2, p2pkh(5))
const outputs = [{ satoshis: 40, lockingScript: p2pkh(0) }, p2pkh(6)]
const again = chain.spend({ inputs: [fee, moved], outputs })

async function submit(server: TestServer, transaction: FakeTransaction, more: FakeTransaction[] = []) {
  const isMint = tree.transactions.includes(transaction)
  const topics = [isMint ? 'tm_names' : 'tm_ordinals']
  await server.take(beefOf(transaction, { with: more }), topics)
}

let server: TestServer
beforeAll(async () => {
  server = await servers.start(treeOf(chain.deployment))
  for (const each of [genesis, a, b]) await submit(server, each)
  await submit(server, ab, [a, purse])
  await submit(server, abc)
  await submit(server, moved, [ab])
  await submit(server, again, [fee, moved])
})

const txidsOf = (transactions: FakeTransaction[]): string[] => transactions.map(({ txid }) => txid)

const asking = (query: unknown, headers: Record<string, string> = {}, to = server) => {
  const question = posted({ service: 'ls_names', query })
  return to.ask('/lookup', { ...question, headers: { ...question.headers, ...headers } })
}

/** The one output of an answer in JSON, and the transactions of its BEEF. */
async function answered(query: unknown, headers?: Record<string, string>, to?: TestServer) {
  const { status, headers: answer, json } = await asking(query, headers, to)
  expect([status, answer['content-type']]).toEqual([200, 'application/json; charset=utf-8'])
  const { type, outputs } = json as { type: string; outputs: { beef: number[]; outputIndex: number }[] }
  expect([type, outputs.length]).toEqual(['output-list', 1])
  const { beef = [], outputIndex = -1 } = outputs[0] ?? {}
  const txids = Beef.fromBinary(beef).txs.map(({ txid }) => txid)
  const subject = Transaction.fromBEEF(beef).id('hex')
  expect(txids.at(-1)).toBe(subject)
  return { output: `${subject}_${outputIndex}`, txids, beef }
}

test('the current output of a name comes with its ordinal’s life, what places it, and the way to genesis', async () => {
  const { output, txids, beef } = await answered({ name: 'ab', history: true })
  expect(output).toBe(again.outpoint(1))
  expect([...txids].sort()).toEqual(txidsOf([genesis, a, purse, ab, moved, fee, again]).sort())
  const full = new Set(txids)
  for (const { txid, tx } of Beef.fromBinary(beef).txs)
    for (const { sourceTXID = '' } of tx?.inputs ?? [])
      if (full.has(sourceTXID)) expect(txids.indexOf(sourceTXID)).toBeLessThan(txids.indexOf(txid))
})

test.each<[string, unknown, FakeTransaction[], number]>([
  ['an origin', { origin: 'ab' }, tree.way('ab'), 2],
  ['an origin behind others', { origin: 'abc' }, tree.way('abc'), 2],
  ['a node that was minted', { node: 'abc' }, tree.way('abc'), 1],
  ['a node that was restated', { node: 'ab' }, tree.way('abc'), 0],
  ['the root', { node: '' }, tree.way('b'), 0],
  ['the node to mine from', { mine: 'abcd' }, tree.way('abc'), 1],
  ['a name that never moved', { name: 'abc' }, tree.way('abc'), 2],
])('%s comes with the way to genesis and nothing else', async (_, query, way, vout) => {
  const { output, txids } = await answered({ ...(query as object), history: true })
  expect(output).toBe(way.at(-1)?.outpoint(vout))
  expect(txids).toEqual(txidsOf(way))
})

test.each(['name', 'origin', 'mine', 'node'])('{%s} without history is as it was', async (form) => {
  const text = form === 'mine' ? 'abcd' : 'abc'
  const plain = await asking({ [form]: text })
  expect(await asking({ [form]: text, history: false })).toMatchObject({ status: 200, body: plain.body })
  expect((await answered({ [form]: text })).txids).toEqual([abc.txid])
})

test('a history asked for in binary is JSON, which the SDK keeps completely, unless only binary is accepted', async () => {
  const query = { name: 'ab', history: true }
  const { txids } = await answered(query)
  for (const Accept of ['*/*', 'application/json, application/octet-stream'])
    expect((await answered(query, { 'X-Aggregation': 'yes', Accept })).txids).toEqual(txids)
  const binary = { 'X-Aggregation': 'yes', Accept: 'application/octet-stream' }
  const { headers, body } = await asking(query, binary)
  expect(headers['content-type']).toBe('application/octet-stream')
  const reader = new Utils.Reader(Array.from(body))
  expect(reader.readVarIntNum()).toBe(1)
  expect([Utils.toHex(reader.read(32)), reader.readVarIntNum()]).toEqual([again.txid, 1])
  expect(reader.readVarIntNum()).toBe(0)
  // As from OverlayExpress: of a V1 BEEF, the Python SDK reads the last transaction only.
  const { version, txs } = Beef.fromBinary(reader.read())
  expect([version, txs.map(({ txid }) => txid)]).toEqual([BEEF_V2, txids])
})

test('a host that does not take the ordinals of names shows a name to its origin', async () => {
  const host = await servers.start({ ...treeOf(chain.deployment), CONTENT_TYPES: 'image/*' })
  for (const each of tree.transactions) await submit(host, each)
  const { output, txids } = await answered({ name: 'ab', history: true }, {}, host)
  expect({ output, txids }).toEqual({ output: ab.outpoint(2), txids: txidsOf(tree.way('ab')) })
})

describe('where not all is held', () => {
  /** Asks while the store does not hold a transaction. */
  const without = async (missing: FakeTransaction, query: object) => {
    const { graph } = server.node
    const held = graph.transactions.raw.bind(graph.transactions)
    return await whileReplaced(graph.transactions, 'raw', {
      by: (txid) => (txid === missing.txid ? undefined : held(txid)),
      during: () => answered({ ...query, history: true }),
    })
  }

  test('of an ordinal’s life, the rest is given, and the proof of the name with it', async () => {
    const full = await answered({ name: 'ab', history: true })
    for (const missing of [moved, fee, purse]) {
      const { output, txids } = await without(missing, { name: 'ab' })
      expect(output).toBe(full.output)
      expect(txids).toEqual(full.txids.filter((txid) => txid !== missing.txid))
    }
  })

  test('of the way to genesis, it is given as far as it goes', async () => {
    const { txids } = await without(a, { origin: 'abc' })
    expect(txids).toEqual(txidsOf(tree.way('abc').slice(tree.way('abc').indexOf(a) + 1)))
  })

  test('of the output itself, nothing is given', async () => {
    const { graph } = server.node
    const held = graph.transactions.raw.bind(graph.transactions)
    const answer = await whileReplaced(graph.transactions, 'raw', {
      by: (txid) => (txid === abc.txid ? undefined : held(txid)),
      during: () => asking({ origin: 'abc', history: true }),
    })
    expectError(answer, { status: 500, code: 'INTERNAL', overlay: true })
  })
})
