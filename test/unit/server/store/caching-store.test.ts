import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BlockedError } from '../../../../backend/src/graph/blocklist.js'
import { BlocklistFilter } from '../../../../backend/src/graph/blocklist-filter.js'
import { dependency } from '../../../../backend/src/graph/dependencies.js'
import { CHUNK_BYTES, TIP } from '../../../../backend/src/graph/graph-store.js'
import { encodeMap } from '../../../../backend/src/graph/map-coder.js'
import { sha256 } from '../../../../backend/src/graph/native-hash.js'
import { graphRecords, type OutputRecord } from '../../../../backend/src/graph/records.js'
import { utf8 } from '../../../../backend/src/protocol/bytes.js'
import { SqlGraphStore } from '../../../../backend/src/storage/sql/graph-store.js'
import { CachingStore } from '../../../../src/server/store/caching-store.js'
import { openSqlite } from '../../../support/storage/sqlite-database.js'

let folder: string
let database: Awaited<ReturnType<typeof openSqlite>>
let store: CachingStore
/** How often the database was asked. */
let reads = 0

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'minetree-'))
  database = await openSqlite(folder)
  const { reader, writer } = database
  const counting: typeof reader = {
    all: (...asked) => {
      reads++
      return reader.all(...asked)
    },
    first: (...asked) => {
      reads++
      return reader.first(...asked)
    },
  }
  store = new CachingStore({ store: new SqlGraphStore({ writer, reader: counting }) })
  await store.open()
})

afterEach(async () => {
  await database.close()
  await rm(folder, { recursive: true })
})

const txid = (seed: number): string => seed.toString(16).padStart(64, '0')
const body = utf8('body')
const content = { sha256: sha256(body).toString('hex'), contentType: 'text/plain', length: body.length }
const first: OutputRecord = { outpoint: { txid: txid(1), vout: 0 }, satoshis: 1, content }
const second: OutputRecord = { outpoint: { txid: txid(2), vout: 0 }, satoshis: 1, previous: first.outpoint }

const stream = { outpoint: first.outpoint, chunkTypes: ['gw/stream'] }

async function readsOf(work: () => unknown): Promise<number> {
  const before = reads
  await work()
  return reads - before
}

test('what was asked is not asked again, until something is written', async () => {
  await store.record(graphRecords({ outputs: [first], contents: [{ sha256: content.sha256, bytes: body }] }))
  const asked: (() => unknown)[] = [
    () => store.ordinals.output(first.outpoint),
    () => store.ordinals.at(first.outpoint, TIP),
    () => store.metadata.merged(first.outpoint),
    () => store.transactions.spenderOf(first.outpoint),
    () => store.content.chunk(content.sha256, 0),
    () => store.streams.summary(stream),
  ]
  for (const ask of asked) {
    expect(await readsOf(ask)).toBeGreaterThan(0)
    expect(await readsOf(ask)).toBe(0)
  }
  await store.record(graphRecords({ outputs: [second] }))
  expect(await store.ordinals.at(first.outpoint, TIP)).toMatchObject({ output: second, sequence: 1 })
  expect(await store.ordinals.at(first.outpoint, 0)).toMatchObject({ output: first, tip: false })
})

test.each([
  ['long', 1, 60_000, 0],
  ['that takes much memory', 6000, 1, 1],
])('metadata %s is kept accordingly', async (_, keys, length, again) => {
  const entries = Array.from({ length: keys }, (_, at): [string, string] => [
    at === 0 ? 'a' : at.toString(36),
    'x'.repeat(length),
  ])
  const bytes = encodeMap([{ command: 'SET', entries }])
  const outputs = [{ ...first, mapLength: bytes.length }]
  const maps = [{ outpoint: first.outpoint, bytes }]
  await store.record(graphRecords({ outputs, maps }))
  const ask = () => store.metadata.merged(first.outpoint)
  const reading = await readsOf(ask)
  expect(await readsOf(ask)).toBe(again * reading)
  expect((await ask())?.get('a')).toHaveLength(length)
})

test.each([
  ['short', 1000, 0],
  ['that takes much memory', 2_000_000, 1],
])('an answer %s is kept accordingly, until something is written', async (_, weight, again) => {
  await store.record(graphRecords({ outputs: [first] }))
  const tip = async () => (await store.ordinals.at(first.outpoint, TIP))?.output.outpoint
  let read = 0
  const ask = () =>
    store.consistent(
      () => {
        read++
        return tip()
      },
      { key: 'tip', dependsOn: () => [dependency.all], weightOf: () => weight },
    )
  expect(await ask()).toEqual(first.outpoint)
  expect(await ask()).toEqual(first.outpoint)
  expect(read).toBe(1 + again)
  await store.record(graphRecords({ outputs: [second] }))
  expect(await ask()).toEqual(second.outpoint)
})

test('what a transaction spends or proves is asked for again, and nothing else is', async () => {
  await store.record(graphRecords({ outputs: [first, second] }))
  const asked = {
    output: () => store.ordinals.output(first.outpoint),
    'an earlier step': () => store.ordinals.at(first.outpoint, 0),
    tip: () => store.ordinals.at(first.outpoint, TIP),
    spender: () => store.transactions.spenderOf(second.outpoint),
    'spender of another': () => store.transactions.spenderOf(first.outpoint),
  }
  for (const ask of Object.values(asked)) await ask()
  const raw = utf8('a transaction')
  const spends = [{ outpoint: second.outpoint, spender: txid(3) }]
  await store.record(graphRecords({ transactions: [{ txid: txid(3), raw }], spends }))
  const again: string[] = []
  for (const [what, ask] of Object.entries(asked)) if ((await readsOf(ask)) > 0) again.push(what)
  expect(again).toEqual(['tip', 'spender'])

  const height = () => store.transactions.heightOf(txid(3))
  expect(await height()).toBeUndefined()
  const proof = { height: 7, root: txid(7), merklePath: new Uint8Array(1) }
  await store.record(graphRecords({ transactions: [{ txid: txid(3), raw, proof }] }))
  expect(await height()).toBe(7)
  expect(await readsOf(height)).toBe(0)
  await store.disprove({ height: 7, root: txid(7) })
  expect(await height()).toBeUndefined()
  expect(await readsOf(asked.output)).toBe(1)
})

test('a whole answer that depends on nothing is used while something is written, and no other is', async () => {
  const answer = (key: string, dependsOn: string[]) =>
    store.consistent(async () => key, { key, dependsOn: () => dependsOn, weightOf: () => 1 })
  await answer('lasting', [])
  await answer('changing', [dependency.lineages])
  const known = () => ['lasting', 'changing'].map((key) => store.cachedAnswer(key))
  expect(known()).toEqual(['lasting', 'changing'])
  const change = async (): Promise<unknown[]> => known()
  expect(await store.writing(change, () => [])).toEqual(['lasting', undefined])
  expect(known()).toEqual(['lasting', 'changing'])
  // Nobody knows what that has changed.
  await store.writing(change, () => undefined)
  expect(known()).toEqual(['lasting', undefined])
  expect(await store.writing(change)).toEqual([undefined, undefined])
  expect(known()).toEqual([undefined, undefined])
})

test('answers take as much memory as the setting says', async () => {
  store = new CachingStore({ store: new SqlGraphStore(database), maxBytes: 200_000 })
  await store.open()
  for (let key = 0; key < 100; key++)
    await store.consistent(async () => key, {
      key: String(key),
      dependsOn: () => [dependency.spend({ txid: txid(key), vout: 0 })],
      weightOf: () => 1000,
    })
  const kept = Array.from({ length: 100 }, (_, key) => store.cachedAnswer(String(key)) !== undefined)
  expect(kept.lastIndexOf(false)).toBe(99 - kept.filter(Boolean).length)
  expect(kept.filter(Boolean).length).toBeGreaterThan(40)
  expect(kept.filter(Boolean).length).toBeLessThan(50)
})

test('whether an output is an origin is not asked again, until something is written', async () => {
  const ask = () => store.names.genuineOrigins([first.outpoint])
  const names = [{ name: 'a', outpoint: first.outpoint }]
  expect(await ask()).toEqual([])
  expect(await readsOf(ask)).toBe(0)
  await store.record(graphRecords({ names }))
  expect(await ask()).toEqual(names)
  expect(await readsOf(ask)).toBe(0)
  expect(
    await readsOf(() => store.names.genuineOrigins([1, 2, 3].map((vout) => ({ txid: txid(1), vout })))),
  ).toBe(1)
})

test('what was not there is asked for again', async () => {
  expect(await store.ordinals.output(first.outpoint)).toBeUndefined()
  expect(await store.content.chunk(content.sha256, 0)).toBeUndefined()
  expect(await readsOf(() => store.ordinals.output(first.outpoint))).toBe(1)
  expect(await readsOf(() => store.content.chunk(content.sha256, 0))).toBe(1)
})

test('an answer that a write has overtaken is not kept', async () => {
  await store.record(graphRecords({ outputs: [first], contents: [{ sha256: content.sha256, bytes: body }] }))
  const reading = store.ordinals.at(first.outpoint, TIP)
  await store.record(graphRecords({ outputs: [second] }))
  await reading
  expect(await store.ordinals.at(first.outpoint, TIP)).toMatchObject({ output: second })
})

test('what is kept in memory is not served once it is blocked, and is again afterwards', async () => {
  await store.record(graphRecords({ outputs: [first], contents: [{ sha256: content.sha256, bytes: body }] }))
  const served = new BlocklistFilter(store)
  const subject = { kind: 'content', value: content.sha256 } as const
  const asked = [() => served.ordinals.output(first.outpoint), () => served.content.chunk(content.sha256, 0)]
  const before = [await asked[0]?.(), await asked[1]?.()]
  expect(before).toEqual([first, body])
  await store.blocklist.add({ ...subject, reason: 'a test', since: 1 })
  for (const ask of asked) await expect(ask()).rejects.toBeInstanceOf(BlockedError)
  await store.blocklist.remove(subject)
  expect([await asked[0]?.(), await asked[1]?.()]).toEqual(before)
  await store.evict(first.outpoint)
  await expect(served.ordinals.output(first.outpoint)).rejects.toBeInstanceOf(BlockedError)
})

test('where nothing is blocked, the guard costs no read', async () => {
  await store.record(graphRecords({ outputs: [first], contents: [{ sha256: content.sha256, bytes: body }] }))
  const served = new BlocklistFilter(store)
  const bare = await readsOf(() => store.names.byPrefix({ prefix: '', limit: 5 }))
  expect(await readsOf(() => served.names.byPrefix({ prefix: '', limit: 5 }))).toBe(bare)
  await served.ordinals.at(first.outpoint, TIP)
  expect(await readsOf(() => served.ordinals.at(first.outpoint, TIP))).toBe(0)
})

test('a read that failed is tried again', async () => {
  await store.record(graphRecords({ outputs: [first] }))
  const { first: read } = database.reader
  database.reader.first = async () => {
    throw new Error('the disk is gone')
  }
  await expect(store.ordinals.output(first.outpoint)).rejects.toThrow('the disk is gone')
  database.reader.first = read
  expect(await store.ordinals.output(first.outpoint)).toEqual(first)
})

/** Stores a body, and returns how many reads each of some requests for a chunk of it takes. */
async function readsOfChunk(length: number, position: number, times: number): Promise<number[]> {
  const bytes = new Uint8Array(length).fill(length)
  const hash = sha256(bytes).toString('hex')
  const outpoint = { txid: txid(length), vout: 0 }
  const shown = { sha256: hash, contentType: 'text/plain', length }
  await store.record(
    graphRecords({
      outputs: [{ outpoint, satoshis: 1, content: shown }],
      contents: [{ sha256: hash, bytes }],
    }),
  )
  const counts: number[] = []
  for (let time = 0; time < times; time++) {
    counts.push(
      await readsOf(async () => {
        const chunk = await store.content.chunk(hash, position)
        expect(chunk?.length).toBe(Math.min(length - position * CHUNK_BYTES, CHUNK_BYTES))
      }),
    )
  }
  return counts
}

test.each([
  ['a short body is kept once it was read', 65_536, 0, [1, 0, 0]],
  ['a chunk of a longer one once it was read again', 65_537, 0, [1, 1, 0]],
  ['so is a chunk that is the whole body', CHUNK_BYTES, 0, [1, 1, 0]],
  ['so is the last chunk of a mebibyte', 4 * CHUNK_BYTES, 3, [1, 1, 0]],
  ['and a short one at its end', CHUNK_BYTES + 1, 1, [1, 1, 0]],
  ['what comes after a mebibyte is not kept', 4 * CHUNK_BYTES + 1, 4, [1, 1, 1]],
])('%s', async (_, length, position, reads) => {
  expect(await readsOfChunk(length, position, reads.length)).toEqual(reads)
})

test('long bodies take as much memory as their share, and leave short ones theirs', async () => {
  store = new CachingStore({ store: new SqlGraphStore(database), maxBytes: 8 * CHUNK_BYTES })
  await store.open()
  await store.record(graphRecords({ outputs: [first], contents: [{ sha256: content.sha256, bytes: body }] }))
  const { bodies } = store.caches
  const isInMemory = async (sha256: string, position: number): Promise<boolean> => {
    const { hits } = bodies
    await store.content.chunk(sha256, position)
    return bodies.hits > hits
  }
  expect(await isInMemory(content.sha256, 0)).toBe(false)
  const long = [1, 2, 3].map((fill) => new Uint8Array(CHUNK_BYTES).fill(fill))
  const hashes = long.map((bytes) => sha256(bytes).toString('hex'))
  const outputs = hashes.map((hash, vout) => ({
    outpoint: { txid: txid(1000), vout },
    satoshis: 1,
    content: { sha256: hash, contentType: 'text/plain', length: CHUNK_BYTES },
  }))
  const contents = long.map((bytes, at) => ({ sha256: hashes[at] ?? '', bytes }))
  await store.record(graphRecords({ outputs, contents }))
  for (const hash of hashes) for (let time = 0; time < 2; time++) await store.content.chunk(hash, 0)
  // Two fit.
  expect(await isInMemory(hashes[2] ?? '', 0)).toBe(true)
  expect(await isInMemory(hashes[1] ?? '', 0)).toBe(true)
  expect(await isInMemory(hashes[0] ?? '', 0)).toBe(false)
  expect(await isInMemory(content.sha256, 0)).toBe(true)
})
