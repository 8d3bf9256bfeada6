import { MerklePath } from '@bsv/sdk'
import { nativeHash256 } from '../../../../backend/src/graph/native-hash.js'
import { previousOf, rootOf, timeOf } from '../../../../backend/src/protocol/block-header.js'
import { utf8 } from '../../../../backend/src/protocol/bytes.js'
import { fundedTransaction } from '../../../../src/cli/fake-transactions.js'
import { fill } from '../../../../src/cli/local-network/fill.js'
import { emptyLocalNetwork, networkOf } from '../../../support/cli/local-network.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  OPEN_LOCK,
} from '../../../support/protocol/fake-chain.js'
import { type TestServer, useServers } from '../../../support/server/test-server.js'

const servers = useServers()

const note = (text: string) =>
  inscriptionScript({ contentType: 'text/plain', body: utf8(text), lock: OPEN_LOCK })

/** A coin that is not an ordinal, and inscriptions that spend it, each a transaction of its own. */
function inscriptions(...texts: string[]) {
  const chain = new FakeChain()
  const coin = chain.spend({ outputs: [{ satoshis: 5000, lockingScript: OPEN_LOCK }] })
  const spenders = texts.map((text) => chain.move(coin, 0, note(text)))
  return { coin, spenders }
}

const unproven = (transaction: FakeTransaction, coin: FakeTransaction): Uint8Array =>
  beefOf(transaction, { proven: false, with: [coin] })

async function headersOf({ node }: TestServer) {
  const { headers } = node.graph
  const range = await headers.range()
  const count = range === undefined ? 0 : range.to - range.from + 1
  return { range, headers: await headers.read({ from: range?.from ?? 0, count }), count }
}

const heightOf = ({ node }: TestServer, { txid }: { txid: string }) => node.graph.transactions.heightOf(txid)

test('each submission is the next block of one chain, with the time at which it came', async () => {
  const before = Math.floor(Date.now() / 1000)
  const server = await emptyLocalNetwork(servers)
  await fill(networkOf(server))
  const { range, headers, count } = await headersOf(server)
  // The tree, five chunks, six mints, an identity, a site.
  expect(range).toEqual({ from: 1, to: 14 })
  const after = Math.ceil(Date.now() / 1000)
  for (let at = 0; at < count; at++) {
    expect(timeOf(headers, at)).toBeGreaterThanOrEqual(before)
    expect(timeOf(headers, at)).toBeLessThanOrEqual(after)
    const parent = at === 0 ? new Uint8Array(32) : nativeHash256(headers.subarray((at - 1) * 80, at * 80))
    expect(previousOf(headers, at)).toEqual(Uint8Array.from(parent))
  }
  const newest = server.node.graph.listings.newestNames({ limit: 10 })
  const heights = newest.map(({ name, height }) => `${name} ${height}`)
  expect(heights).toEqual(['home 13', 'hom 12', 'ho 11', 'hum 9', 'hu 8', 'h 7'])
  const feed = (await server.ask('/feeds/names.atom')).body.toString()
  const years = [...feed.matchAll(/<updated>(\d{4})/g)].map(([, year]) => Number(year))
  expect(Math.min(...years)).toBeGreaterThanOrEqual(new Date(before * 1000).getUTCFullYear())
  expect((await server.ask('/health')).json).toMatchObject({ height: 14 })
})

test('a block has all of a submission, with merkle paths to the root in its header', async () => {
  const server = await emptyLocalNetwork(servers)
  const { coin, spenders } = inscriptions('one')
  const [one = coin] = spenders
  await server.take(beefOf(one, { with: [coin] }), ['tm_ordinals'])
  const { headers } = await headersOf(server)
  for (const { txid } of [coin, one]) {
    const proof = server.node.graph.transactions.get(txid)?.proof
    expect(proof).toMatchObject({ height: 2, root: rootOf(headers, 1) })
    const path = MerklePath.fromBinary([...(proof?.merklePath ?? [])])
    expect(path.computeRoot(txid)).toBe(rootOf(headers, 1))
  }
})

test('what is known stays in its block, whatever block a client makes up', async () => {
  const server = await emptyLocalNetwork(servers)
  const { coin, spenders } = inscriptions('one', 'other')
  const [one = coin] = spenders
  await server.submit(beefOf(one, { with: [coin] }), ['tm_ordinals'])
  expect(heightOf(server, one)).toBe(2)
  await server.submit(beefOf({ ...one, height: 900_000 }, { with: [coin] }), ['tm_ordinals'])
  expect([heightOf(server, one), (await headersOf(server)).range]).toEqual([2, { from: 1, to: 2 }])
})

test('what spends a spent coin is in no block', async () => {
  const server = await emptyLocalNetwork(servers)
  const { coin, spenders } = inscriptions('one', 'other')
  const [one = coin, other = coin] = spenders
  await server.submit(beefOf(one, { with: [coin] }), ['tm_ordinals'])
  for (const beef of [beefOf({ ...other, height: 1 }), unproven(other, coin)])
    expect(await server.submit(beef, ['tm_ordinals'])).toMatchObject({ status: 409 })
  expect((await headersOf(server)).range).toEqual({ from: 1, to: 2 })
})

test('submissions at the same time are in different blocks', async () => {
  const server = await emptyLocalNetwork(servers)
  const all = Array.from({ length: 8 }, (_, index) =>
    fundedTransaction([{ satoshis: 1, lockingScript: note(`${index}`) }]),
  )
  const answers = await Promise.all(all.map(({ beef }) => server.submit(beef, ['tm_ordinals'])))
  expect(answers.map(({ status }) => status)).toEqual(all.map(() => 200))
  const heights = all.map((each) => heightOf(server, each) ?? 0)
  expect(heights.sort((one, other) => one - other)).toEqual([2, 3, 4, 5, 6, 7, 8, 9])
})

test('of two that spend one coin at the same time, one is mined, and no block has the other', async () => {
  const server = await emptyLocalNetwork(servers)
  const { coin, spenders } = inscriptions('one', 'other')
  const { engine } = server.node.overlay
  const answers = await Promise.allSettled(
    spenders.map((each) => engine.submit({ beef: beefOf(each, { with: [coin] }), topics: ['tm_ordinals'] })),
  )
  expect(answers.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  expect(spenders.filter((each) => heightOf(server, each) !== undefined)).toHaveLength(1)
  expect((await headersOf(server)).range).toEqual({ from: 1, to: 2 })
})

test('what several bring at the same time is in one block', async () => {
  const server = await emptyLocalNetwork(servers)
  const { coin, spenders } = inscriptions('one')
  const [one = coin] = spenders
  const { engine } = server.node.overlay
  const submit = () => engine.submit({ beef: unproven(one, coin), topics: ['tm_ordinals'] })
  await Promise.all([submit(), submit(), submit()])
  expect([heightOf(server, one), (await headersOf(server)).range]).toEqual([2, { from: 1, to: 2 }])
})
