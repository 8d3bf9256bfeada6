import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Sql } from '../../../backend/src/facts/connection.js'
import { canonicalRows } from '../../../backend/src/index/canonical.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { LocalWriter, storeFiles } from '../../../backend/src/writer/local-writer.js'
import { recordOf } from '../../support/protocol/block.js'
import { type FakeTransaction, inscriptionScript, p2pkh } from '../../support/protocol/fake-chain.js'
import { OpenedWriter } from '../../support/writer/opened-writer.js'

let store: OpenedWriter
beforeEach(() => {
  store = new OpenedWriter()
})
afterEach(() => store.close())

function inscription(text: string): FakeTransaction {
  const lockingScript = inscriptionScript({ contentType: 'text/plain', body: utf8(text) })
  return store.chain.spend({ inputs: [], outputs: [{ satoshis: 1, lockingScript }] })
}

const pendingOne = (satoshis: number): FakeTransaction =>
  store.chain.spend({ inputs: [], outputs: [{ satoshis, lockingScript: p2pkh(1) }] })

function indexRows(): Record<string, string[]> {
  const sql = new Sql(storeFiles(store.folder).index)
  const rows = canonicalRows(sql)
  sql.close()
  return rows
}

/** The connections of the writer, to make their files fail. */
function filesOf({ writer }: OpenedWriter): { logFile: Sql; indexFile: Sql } {
  return writer as unknown as { logFile: Sql; indexFile: Sql }
}

test('attempts to find what is missing are forgotten once it is not missing any more', async () => {
  const chain = store.chain
  const coin = pendingOne(1)
  const lockingScript = inscriptionScript({ contentType: 'text/plain', body: utf8('text') })
  const note = chain.spend({
    inputs: [{ transaction: coin, vout: 0 }],
    outputs: [{ satoshis: 1, lockingScript }],
  })
  await store.know(note)
  expect(store.index('select vout from missing')).toHaveLength(1)
  const attempt = { tries: 1, transactions: 0, bytes: 0, place: 1 }
  const other = { txid: 'ab'.repeat(32), vout: 0 }
  const attempts = () =>
    store
      .log('select txid, hole from ancestor order by hole')
      .map(({ txid, hole }) => [txid.toString('hex'), hole])
  await store.writer.note('postpone', [{ txid: note.txid, vout: 0 }], { ...attempt, hole: false, due: 5 })
  await store.writer.note('postpone', [other], { ...attempt, hole: true, due: 9 })
  expect(attempts()).toEqual([[note.txid, 0]])
  await store.know(coin, 100)
  await store.writer.note('postpone', [other], { ...attempt, hole: true, due: 9 })
  expect(attempts()).toEqual([])
})

describe('what is recorded together', () => {
  test('shares a commit, and what fails of it fails alone', async () => {
    const damaged = { txid: 'ab'.repeat(32), raw: Uint8Array.of(1, 2, 3) }
    const [a, b] = [inscription('a'), inscription('b')]
    await store.writer.opened
    const commits = store.changes().length
    const all = await Promise.allSettled([
      store.writer.record([recordOf(a)]),
      store.writer.record([damaged]),
      store.writer.record([recordOf(b), damaged]),
      store.writer.record([recordOf(b)]),
    ])
    expect(all.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled'])
    expect(store.facts({ a, b })).toEqual(['a', 'b'])
    expect(store.changes()).toHaveLength(commits + 1)
    const admitted = all.flatMap((each) => (each.status === 'fulfilled' ? each.value.admitted : []))
    expect(admitted.map(({ outpoint }) => outpoint.txid)).toEqual([a.txid, b.txid])
  })

  test('a submission that fails alone leaves nothing behind', async () => {
    const before = store.count()
    const [a, money] = [inscription('a'), pendingOne(5)]
    const damaged = { txid: 'ab'.repeat(32), raw: Uint8Array.of(1, 2, 3) }
    await expect(store.writer.record([recordOf(a), recordOf(money), damaged])).rejects.toThrow()
    expect([store.count(), store.pending({ money })]).toEqual([before, []])
    await store.know(a)
    expect(store.facts({ a })).toEqual(['a'])
  })
})

describe('at the start', () => {
  test('an index is not derived from damaged bytes', async () => {
    const a = inscription('genuine')
    await store.know(a)
    const damaged = store.reopen(({ log, index }) => {
      rmSync(index)
      change(log, "update log set body = cast(replace(body, 'genuine', 'damaged') as blob) where kind = 1")
    })
    await expect(damaged).rejects.toMatchObject({ code: 'DAMAGED', owner: a.txid })
    expect(store.index('select count(*) as n from out')).toEqual([{ n: 0 }])
  })

  test.each([
    ['is gone', ({ index }: { index: string }) => rmSync(index)],
    [
      'is that of another log',
      ({ index }: { index: string }) => change(index, "update meta set value = 'x' where name = 'log'"),
    ],
    ['is ahead of the log', ({ index }: { index: string }) => change(index, 'update counts set cursor = 99')],
    [
      'was derived by other rules',
      ({ index }: { index: string }) => change(index, "update meta set value = '[]' where name = 'rules'"),
    ],
  ])('an index that %s is derived again, to the same rows', async (_, damage) => {
    const { chain } = store
    await store.know(chain.genesis, 100)
    for (const name of ['a', 'ab']) await store.know(chain.mint(name), 101)
    const before = indexRows()
    await store.reopen((files) => {
      if (!_.includes('gone')) change(files.index, 'delete from name')
      damage(files)
    })
    expect(indexRows()).toEqual(before)
    expect(store.names()).toEqual(['a', 'ab'])
  })

  test('an index whose pages are damaged while it is open is derived again, beside its readers', async () => {
    const { writer } = store
    const { indexFile } = filesOf(store)
    await writer.opened
    const pragma = (name: string): number => Number(indexFile.get(`pragma ${name}`)?.[name])
    // In these are the schema, and the roots of all tables.
    const first = pragma('page_count')
    for (let n = 0; n < 200; n++) await store.know(inscription(String(n)), 101)
    indexFile.exec('pragma wal_checkpoint(truncate); pragma cache_size = 0;')
    const { index } = storeFiles(store.folder)
    const bytes = readFileSync(index)
    writeFileSync(index, bytes.fill(0xab, first * pragma('page_size')))
    const states: string[] = []
    writer.onStatus(({ state, isEmptied }) => states.push(`${state}${isEmptied ? ', emptied' : ''}`))
    const late = inscription('late')
    await expect(store.know(late)).rejects.toMatchObject({ code: 'DAMAGED', message: /derived again/ })
    await store.know(late)
    expect(states).toEqual(expect.arrayContaining(['rebuilding, emptied', 'equal']))
    const mended = indexRows()
    expect(store.index('select count(*) as n from out where sha is not null')).toEqual([{ n: 201 }])
    await store.reopen((files) => rmSync(files.index))
    expect(indexRows()).toEqual(mended)
  })

  test('writes wait until the index has all facts, and settings do not', async () => {
    for (let n = 0; n < 30; n++) await store.know(inscription(String(n)))
    const late = inscription('late')
    await store.reopen(({ index }) => rmSync(index))
    await store.writer.close()
    rmSync(storeFiles(store.folder).index)
    store.writer = new LocalWriter(store)
    expect(store.writer.status).toEqual({ state: 'rebuilding', done: 0 })
    const recorded = store.writer.record([recordOf(late)])
    await store.writer.setting('checked_tip', '5')
    await store.writer.setting('tracker', 'scripts-only')
    expect(store.log('select value from state')).toEqual([{ value: '5' }])
    store.writer.deriveBy(store.admission)
    await recorded
    expect(store.index("select value from register where subject = 'setting tracker'")).toEqual([
      { value: '"scripts-only"' },
    ])
    expect(store.index('select count(*) as n from out')).toEqual([{ n: 31 }])
  })

  test('indexes of other versions are removed once this one has all facts', async () => {
    const old = join(store.folder, 'index-0.db')
    await store.reopen(() => writeFileSync(old, ''))
    expect([existsSync(old), existsSync(storeFiles(store.folder).index)]).toEqual([false, true])
  })
})

test('what waits counts once what it lost to is removed from the log', async () => {
  const { chain } = store
  const coin = pendingOne(9)
  const spender = (text: string): FakeTransaction =>
    chain.spend({
      inputs: [{ transaction: coin, vout: 0 }],
      outputs: [
        { satoshis: 1, lockingScript: inscriptionScript({ contentType: 'text/plain', body: utf8(text) }) },
      ],
    })
  const [winner, loser] = [spender('winner'), spender('loser')]
  await store.submit([winner, coin])
  expect(await store.submit([loser, coin])).toMatchObject({ txid: winner.txid })
  await store.reopen(({ log, index }) => {
    const sql = new Sql(log)
    sql.run('delete from log where key = ?', Buffer.from(winner.txid, 'hex'))
    sql.close()
    rmSync(index)
  })
  await store.know(inscription('other'))
  expect(store.facts({ winner, loser })).toEqual(['loser'])
})

test('a writer that is closed refuses what still waits for rules', async () => {
  const other = new LocalWriter({ folder: join(store.folder, 'other') })
  const recorded = other.record([recordOf(inscription('a'))])
  await other.close()
  await expect(recorded).rejects.toThrow('the writer is closed')
})

test('an index that could not be brought up to date is once that is possible', async () => {
  await store.know(inscription('a'))
  await store.writer.close()
  change(storeFiles(store.folder).index, 'delete from meta')
  const writer = new LocalWriter({ folder: store.folder })
  const { indexFile } = writer as unknown as { indexFile: Sql }
  const exec = indexFile.exec.bind(indexFile)
  indexFile.exec = (sql) => {
    if (sql.startsWith('begin')) throw Object.assign(new Error('disk full'), { code: 'SQLITE_FULL' })
    exec(sql)
  }
  writer.deriveBy(store.admission)
  await expect(writer.opened).rejects.toMatchObject({ code: 'SQLITE_FULL' })
  indexFile.exec = exec
  await new Promise<void>((resolve) => writer.onStatus(({ state }) => state === 'equal' && resolve()))
  expect(indexRows().out).toHaveLength(1)
  await writer.close()
})

test('a log with tables of another version is refused, and so is one without a version', async () => {
  await store.writer.close()
  const { log } = storeFiles(store.folder)
  for (const statement of [
    "update log_meta set value = 1 where name = 'version'",
    "delete from log_meta where name = 'version'",
  ]) {
    change(log, statement)
    expect(() => new LocalWriter({ folder: store.folder })).toThrow(/by another version of minetree/)
  }
})

function change(filename: string, statement: string): void {
  const sql = new Sql(filename)
  sql.exec(statement)
  sql.close()
}
