import { TIP } from '../../backend/src/graph/graph-store.js'
import { encodeMap } from '../../backend/src/graph/map-coder.js'
import { graphRecords } from '../../backend/src/graph/records.js'
import { trait } from '../../backend/src/graph/traits.js'
import { SqlGraphStore } from '../../backend/src/storage/sql/sql-graph-store.js'
import type { SqlReader, SqlValue } from '../../backend/src/storage/sql/sql-reader.js'
import { closeStores, openStore } from '../support/open-store.js'

afterEach(closeStores)

const txid = 'ab'.repeat(32)
const outpoint = { txid, vout: 2 }
const many = Array.from({ length: 300 }, (_, vout) => ({ txid, vout }))

const content = { sha256: txid, contentType: 'text/plain', length: 1 }
const stream = { outpoint, chunkTypes: ['text/plain'] }
const several = [trait.contentType('text/plain'), trait.map('a', '1')]
const map = encodeMap([{ command: 'SET', entries: [['a', '1']] }])

/** A store that remembers what it asked, and how SQLite would find it. */
async function explained() {
  const { database, store } = await openStore()
  await store.record(
    graphRecords({
      nodes: [{ outpoint, domain: '' }],
      names: [{ outpoint, name: 'a' }],
      outputs: [{ outpoint, satoshis: 1, content, mapLength: map.length }],
      maps: [{ outpoint, bytes: map }],
    }),
  )
  const asked: { sql: string; values: SqlValue[] }[] = []
  const reader = new Proxy(database.reader, {
    get: (read, method: keyof SqlReader) => async (sql: string, values: SqlValue[]) => {
      asked.push({ sql, values })
      return await read[method](sql, values)
    },
  })
  const plans = async (): Promise<string[]> => {
    const steps: { detail: string }[] = []
    for (const { sql, values } of asked)
      steps.push(...(await database.reader.all(`explain query plan ${sql}`, values)))
    return steps.map(({ detail }) => detail)
  }
  return { store: new SqlGraphStore({ writer: database.writer, reader }), plans }
}

async function allOf<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = []
  for await (const item of items) all.push(item)
  return all
}

/** Steps that read a whole table; `found` is what a subquery with a limit has found. */
const isScan = (step: string): boolean => /^SCAN (?!CONSTANT ROW|found$)/.test(step)

test('a whole table read is seen as one', async () => {
  const { store } = await openStore()
  const { database } = await openStore()
  await store.ping()
  const [step] = await database.reader.all('explain query plan select * from graph_names', [])
  expect(isScan(step.detail)).toBe(true)
})

test.each<[string, (store: SqlGraphStore) => Promise<unknown>]>([
  ['transaction', (store) => store.transaction(txid)],
  ['nameOrigin', (store) => store.nameOrigin('a')],
  ['liveNode', (store) => store.liveNode('')],
  ['longestNode', (store) => store.longestNode('abc')],
  ['genuineNodes', (store) => store.genuineNodes(many)],
  ['genuineOrigins', (store) => store.genuineOrigins(many)],
  ['namesByPrefix', (store) => store.namesByPrefix({ prefix: 'a', limit: 10 })],
  ['namesByPrefix after', (store) => store.namesByPrefix({ prefix: 'a', after: 'ab', limit: 10 })],
  ['output', (store) => store.output(outpoint)],
  ['firstContentOutput', (store) => store.firstContentOutput(txid)],
  ['currentOutput', (store) => store.currentOutput(outpoint)],
  ['ordinalAt', (store) => store.ordinalAt(outpoint, TIP)],
  ['ownMap', (store) => store.ownMap(outpoint)],
  ['mergedMap', (store) => store.mergedMap(outpoint)],
  ['tipsWith', (store) => store.tipsWith({ traits: [trait.contentType('text/plain')], limit: 10 })],
  ['tipsWith several, after', (store) => store.tipsWith({ traits: several, limit: 10, after: outpoint })],
  ['lineage', async (store) => await allOf(store.lineage(outpoint))],
  ['stream', (store) => store.stream(stream)],
  ['streamChunks', async (store) => await allOf(store.streamChunks(stream))],
  ['contentPieces', async (store) => await store.contentPieces(txid).next()],
  ['admissionsOf', (store) => store.admissionsOf(outpoint)],
  ['admissionsOfTransaction', (store) => store.admissionsOfTransaction(txid)],
  ['unspentOfTopic', (store) => store.unspentOfTopic({ topic: 'tm_names', since: 5, limit: 10 })],
  ['isApplied', (store) => store.isApplied('tm_names', txid)],
  ['spenderOf', (store) => store.spenderOf(outpoint)],
  ['winnerOver', (store) => store.winnerOver(txid)],
  ['blocks', (store) => store.blocks({ from: 5 })],
  ['rivalBlocks', (store) => store.rivalBlocks(many.map((each) => ({ outpoint: each, spender: txid })))],
  ['lastInteraction', (store) => store.lastInteraction('https://a.example', 'tm_names')],
  ['setting', (store) => store.setting('genesis')],
])('%s is answered from an index', async (_, ask) => {
  const { store, plans } = await explained()
  await ask(store)
  const steps = await plans()
  expect(steps.some((step) => step.startsWith('SEARCH'))).toBe(true)
  expect(steps.filter(isScan)).toEqual([])
})

test('a step of an ordinal is found without sorting its life', async () => {
  const { store, plans } = await explained()
  expect(await store.ordinalAt(outpoint, TIP)).toMatchObject({ sequence: 0, tip: true })
  expect(await store.currentOutput(outpoint)).toEqual(outpoint)
  expect(await store.mergedMap(outpoint)).toEqual(new Map([['a', '1']]))
  expect(await store.tipsWith({ traits: several, limit: 10 })).toEqual([outpoint])
  expect(await allOf(store.lineage(outpoint))).toEqual([outpoint])
  expect(await store.stream(stream)).toMatchObject({ length: 1, segments: [{ chunks: 1, length: 1 }] })
  expect((await plans()).filter((step) => step.includes('TEMP B-TREE'))).toEqual([])
})
