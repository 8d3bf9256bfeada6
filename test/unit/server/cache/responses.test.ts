import { rmSync } from 'node:fs'
import { vi } from 'vitest'
import { Sql } from '../../../../backend/src/facts/connection.js'
import { FACT } from '../../../../backend/src/facts/log.js'
import { BlockedError } from '../../../../backend/src/graph/blocklist.js'
import { type Dependency, dependency } from '../../../../backend/src/graph/dependencies.js'
import { utf8 } from '../../../../backend/src/protocol/bytes.js'
import { FactStore } from '../../../../backend/src/read/fact-store.js'
import { Reader } from '../../../../backend/src/read/reader.js'
import { storeFiles } from '../../../../backend/src/writer/local-writer.js'
import { Responses } from '../../../../src/server/cache/responses.js'
import { recordOf } from '../../../support/protocol/block.js'
import { type FakeTransaction, inscriptionScript, p2pkh } from '../../../support/protocol/fake-chain.js'
import { OpenedWriter } from '../../../support/writer/opened-writer.js'

let files: OpenedWriter
let reader: Reader
let store: FactStore

beforeEach(async () => {
  files = new OpenedWriter()
  await files.writer.opened
  openReader()
})
afterEach(async () => {
  reader.close()
  await files.close()
})

function openReader(maxBytes = 1024 * 1024): void {
  reader = new Reader(storeFiles(files.folder), files.writer)
  const answers = new Responses(reader, maxBytes)
  store = new FactStore({ reader, writer: files.writer, answers })
}

const inscribed = (text: string): FakeTransaction =>
  files.chain.inscribe({ contentType: 'a/b', body: utf8(text) })
const moved = (transaction: FakeTransaction): FakeTransaction => files.chain.move(transaction, 0, p2pkh(2))

/** Asks for an answer that is its key. */
async function ask(key: string, dependsOn: Dependency[], weight = 1): Promise<void> {
  store.consistent(() => key, { key, dependsOn: () => dependsOn, weightOf: () => weight })
}

const kept = (...keys: string[]): string[] => keys.filter((key) => store.cachedAnswer(key) !== undefined)

test('an answer is kept until something is committed that it depends on', async () => {
  const [one, other] = [inscribed('one'), inscribed('other')]
  await store.record([recordOf(one), recordOf(other)])
  const spendOf = ({ txid }: FakeTransaction): Dependency => dependency.spend({ txid, vout: 0 })
  await ask('one', [spendOf(one), dependency.lineages])
  await ask('other', [spendOf(other), dependency.lineages])
  await ask('anything', [dependency.all])
  await ask('nothing', [])
  expect(kept('one', 'other', 'anything', 'nothing')).toHaveLength(4)
  await store.record([recordOf(moved(one))])
  expect(kept('one', 'other', 'anything', 'nothing')).toEqual(['other', 'nothing'])
  // Not by this process alone: the counter is that of the writer, whoever asked it.
  await files.writer.record([recordOf(moved(other))])
  expect(kept('other', 'nothing')).toEqual(['nothing'])
})

test('what is pending is something, too, and what is refused or stored already changes nothing', async () => {
  const money = files.chain.spend({ outputs: [{ satoshis: 9, lockingScript: p2pkh(1) }] })
  await ask('anything', [dependency.all])
  await store.record([recordOf(money)])
  expect(kept('anything')).toEqual([])
  await ask('anything', [dependency.all])
  await store.record([recordOf(money)])
  expect(kept('anything')).toEqual(['anything'])
  await store.settings.set('checked_tip', '7')
  expect(kept('anything')).toEqual(['anything'])
})

test('a reorganisation and the blocklist leave nothing, and blocked content is refused at once', async () => {
  const one = inscribed('one')
  await store.record([recordOf(one)])
  const served = store.served
  const outpoint = { txid: one.txid, vout: 0 }
  await ask('nothing', [])
  await files.writer.change('block', { kind: 'outpoint', value: `${one.txid}_0`, reason: 'a test', since: 1 })
  expect(kept('nothing')).toEqual([])
  expect(() => served.ordinals.output(outpoint)).toThrow(BlockedError)
  await ask('nothing', [])
  await files.writer.change('unblock', { kind: 'outpoint', value: `${one.txid}_0` })
  expect(kept('nothing')).toEqual([])
  expect(await served.ordinals.output(outpoint)).toBeDefined()
})

test('a stream that a write has overtaken while it was read is not kept', async () => {
  const one = inscribed('one')
  await store.record([recordOf(one)])
  const query = { outpoint: { txid: one.txid, vout: 0 }, chunkTypes: ['a/b'] }
  const key = `stream a/b ${one.txid}_0`
  const read = reader.acrossSnapshots.bind(reader)
  reader.acrossSnapshots = async (summary) => {
    const found = await read(summary)
    await files.writer.record([recordOf(moved(one))])
    return found
  }
  expect(await store.streams.summary(query)).toMatchObject({ length: 3 })
  expect(kept(key)).toEqual([])
  reader.acrossSnapshots = read
  expect(await store.streams.summary(query)).toMatchObject({ length: 3 })
  expect(kept(key)).toEqual([key])
})

test('what was read before another question has looked for changes is not kept', async () => {
  const memory = new Responses(reader, 1024 * 1024)
  expect(memory.get('another')).toBeUndefined()
  const { commits } = reader
  await store.record([recordOf(inscribed('one'))])
  expect(memory.get('another')).toBeUndefined()
  memory.keep('late', { value: 'old', commits, dependsOn: [dependency.all], weight: 1 })
  expect(memory.get('late')).toBeUndefined()
  memory.keep('late', { value: 'new', commits: reader.commits, dependsOn: [dependency.all], weight: 1 })
  expect(memory.get('late')).toBe('new')
})

test('without the counter of the writer, SQLite says whether anything was committed', async () => {
  reader.close()
  openReader()
  const asked = new Reader(storeFiles(files.folder))
  const memory = new Responses(asked, 1024 * 1024)
  const own = new FactStore({ reader: asked, writer: files.writer, answers: memory })
  own.consistent(() => 'a', { key: 'a', dependsOn: () => [dependency.all], weightOf: () => 1 })
  expect(own.cachedAnswer('a')).toBe('a')
  await files.writer.record([recordOf(inscribed('one'))])
  expect(own.cachedAnswer('a')).toBeUndefined()
  asked.close()
})

test('whoever is too far behind has nothing left', async () => {
  const sight = async (from: number, to: number): Promise<void> => {
    for (let at = from; at < to; at++)
      await files.writer.change('sightings', [{ txid: idOf(at), status: 'seen' }])
  }
  await ask('nothing', [])
  await sight(0, 900)
  expect(kept('nothing')).toEqual(['nothing'])
  await sight(900, 2100)
  expect(kept('nothing')).toEqual([])
})

test('an answer that was not asked for while 10,000 things changed is read again', async () => {
  const purse = files.chain.spend({
    outputs: Array.from({ length: 280 * 38 }, () => ({ satoshis: 9, lockingScript: p2pkh(1) })),
  })
  await ask('asked for', [dependency.lineages])
  await ask('not asked for', [dependency.lineages])
  for (let at = 0; at < 38; at++) {
    const inputs = Array.from({ length: 280 }, (_, vout) => ({ transaction: purse, vout: at * 280 + vout }))
    const lockingScript = inscriptionScript({ contentType: 'a/b', body: utf8(`${at}`) })
    const outputs = [{ satoshis: 1, lockingScript }]
    await files.writer.record([recordOf(files.chain.spend({ inputs, outputs }))])
    expect(kept('asked for')).toEqual(['asked for'])
  }
  expect(kept('not asked for')).toEqual([])
})

test('answers take as much memory as they may, and none takes much of it', async () => {
  reader.close()
  openReader(100_000)
  for (let key = 0; key < 100; key++) await ask(String(key), [], 1000)
  const there = Array.from({ length: 100 }, (_, key) => String(key)).filter((key) => kept(key).length > 0)
  expect(there).toEqual(Array.from({ length: there.length }, (_, at) => String(100 - there.length + at)))
  expect(there.length).toBeGreaterThan(40)
  expect(there.length).toBeLessThan(50)
  await ask('large', [], 5000)
  expect(kept('large')).toEqual([])
})

test('a store that cannot be asked has no answer in memory, and says so where it is read', async () => {
  await ask('a', [])
  await files.writer.record([recordOf(inscribed('one'))])
  reader.close()
  expect(kept('a')).toEqual([])
  await expect(ask('a', [])).rejects.toThrow()
  openReader()
})

const idOf = (at: number): string => at.toString(16).padStart(64, '0')

test('an index that is derived again leaves nothing, also where it has as many commits as before', async () => {
  await store.record([recordOf(inscribed('one'))])
  reader.close()
  await files.reopen(({ index }) => rmSync(index))
  openReader()
  await ask('nothing', [])
  expect(kept('nothing')).toEqual(['nothing'])
  const states: string[] = []
  files.writer.onStatus(({ state }) => states.push(state))
  const sql = new Sql(storeFiles(files.folder).log)
  sql.run('delete from log where kind = ?', FACT.transaction)
  sql.close()
  files.writer.deriveBy(files.admission)
  await vi.waitUntil(() => states.includes('rebuilding') && states.at(-1) === 'equal')
  expect([files.index('select 1 from tx where seq is not null'), kept('nothing')]).toEqual([[], []])
})
