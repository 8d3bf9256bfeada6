import { join } from 'node:path'
import { Sql } from '../../../../../backend/src/facts/connection.js'
import { LocalLog } from '../../../../../backend/src/facts/local-log.js'
import { bodyFact, FACT, type NewFact, transactionFact } from '../../../../../backend/src/facts/log.js'
import { makeLog } from '../../../../../backend/src/facts/log-file.js'
import { latestOf, register, registerFact } from '../../../../../backend/src/facts/registers.js'
import { Pending, State } from '../../../../../backend/src/facts/state.js'
import { fromHex } from '../../../../../backend/src/protocol/bytes.js'
import { copyLog } from '../../../../../src/server/store/facts/copy-log.js'
import { readSettings, writeSetting } from '../../../../../src/server/store/facts/log-settings.js'
import { FakeChain } from '../../../../support/protocol/fake-chain.js'
import { useServers } from '../../../../support/server/test-server.js'

const servers = useServers()
const chain = new FakeChain()
const base = Date.now() - 100_000

function opened(folder: string): { sql: Sql; log: LocalLog } {
  const sql = new Sql(join(folder, 'log.db'))
  sql.exec('pragma journal_mode = wal')
  makeLog(sql, { base })
  return { sql, log: new LocalLog(sql) }
}

const transactions = [chain.genesis, chain.mint('a'), chain.mint('ab')]
const long = bodyFact(new Uint8Array(600 * 1024).fill(7))
const facts: NewFact[] = [
  ...transactions.map((each) => transactionFact(each)),
  long,
  registerFact(register.setting('genesis'), 1, chain.genesis.outpoint(0)),
  // More than one page.
  ...Array.from({ length: 1500 }, (_, index) =>
    registerFact(register.sighting('ab'.repeat(32)), index + 1, 'seen'),
  ),
]

/** A folder with a log of all of these. */
async function logFolder(): Promise<string> {
  const folder = await servers.folder()
  const { sql, log } = opened(folder)
  sql.exec('begin')
  for (const fact of facts) log.insert(fact)
  sql.exec('commit')
  const state = new State(sql)
  state.set('known peers', '7')
  state.hold(
    { txid: chain.genesis.txid, lock: { height: 9, time: 0 }, beef: fromHex('0102') },
    { maxCount: 3 },
  )
  sql.close()
  return folder
}

const never = new AbortController().signal
const copy = (from: string, to: string, options: Partial<Parameters<typeof copyLog>[0]> = {}) =>
  copyLog({ from, to, signal: never, onProgress: () => {}, ...options })

/** All rows of a log but its identity, and the setting that was added. */
function rowsOf(folder: string): Record<string, unknown[]> {
  const sql = new Sql(join(folder, 'log.db'))
  try {
    const of = (table: string, where = ''): unknown[] => sql.all(`select * from ${table} ${where}`)
    return {
      log: of('log', 'order by seq limit 1505'),
      chunk: of('chunk'),
      state: of('state'),
      held: of('held'),
    }
  } finally {
    sql.close()
  }
}

test('a copy has all facts in their places, all state, an id of its own and higher scores', async () => {
  const from = await logFolder()
  const to = join(await servers.folder(), 'deeper', 'copy')
  const before = rowsOf(from)
  const { facts: count, id } = await copy(from, to)
  expect(count).toBe(facts.length + 1)
  expect([rowsOf(to), rowsOf(from)]).toEqual([before, before])
  const { sql, log } = opened(to)
  const source = opened(from)
  expect(log.id).toBe(id)
  expect(log.id).not.toBe(source.log.id)
  expect(Uint8Array.from(log.get(FACT.body, long.key)?.body ?? [])).toEqual(Uint8Array.from(long.body))
  expect(Number(latestOf(log, register.setting('base'))?.value)).toBeGreaterThanOrEqual(
    base + source.log.last,
  )
  expect(sql.all("select name from log_meta where name <> 'id'")).toEqual([
    { name: 'copied from' },
    { name: 'version' },
  ])
  source.sql.close()
  sql.close()
})

test('a copy that was interrupted is continued, and not by that of another log', async () => {
  const [from, to] = [await logFolder(), await servers.folder()]
  const stop = new AbortController()
  const stopping = copy(from, to, { signal: stop.signal, onProgress: () => stop.abort(new Error('stopped')) })
  await expect(stopping).rejects.toThrow('stopped')
  await expect(copy(await logFolder(), to)).rejects.toThrow(/part of a copy of another log/)
  let again = 0
  await copy(from, to, {
    onProgress: ({ facts: copied }) => {
      again = copied
    },
  })
  expect(again).toBeLessThan(facts.length)
  expect(rowsOf(to)).toEqual(rowsOf(from))
})

test('a copy that another version has begun is refused, and not read', async () => {
  const [from, to] = [await logFolder(), await servers.folder()]
  const onProgress = (): void => {
    throw new Error('stopped')
  }
  await expect(copy(from, to, { onProgress })).rejects.toThrow('stopped')
  const sql = new Sql(join(to, 'log.db.part'))
  sql.run("update log_meta set value = 2 where name = 'version'")
  sql.close()
  await expect(copy(from, to)).rejects.toThrow(/by another version of minetree/)
})

test('a copy that was interrupted at its end has what is pending when it is continued', async () => {
  const [from, to] = [await logFolder(), await servers.folder()]
  const source = opened(from)
  const { txid, raw } = chain.mint('x')
  const pending = new Pending(source.sql)
  pending.add({ txid, raw }, [], { isWaiting: false })
  for (const height of [7, 8])
    pending.prove(txid, { height, root: 'ab'.repeat(32), merklePath: Uint8Array.of(1) })
  let pages = 0
  await copy(from, await servers.folder(), { onProgress: () => pages++ })
  const onProgress = (): void => {
    if (--pages === 0) throw new Error('stopped')
  }
  await expect(copy(from, to, { onProgress })).rejects.toThrow('stopped')
  pending.delete(txid)
  source.sql.close()
  await copy(from, to)
  const sql = new Sql(join(to, 'log.db'))
  expect(sql.all('select txid from pending union select txid from pending_proof')).toEqual([])
  sql.close()
})

test('a copy overwrites no store, and is made of none', async () => {
  const [from, other] = [await logFolder(), await logFolder()]
  const before = rowsOf(other)
  await expect(copy(from, other)).rejects.toMatchObject({ code: 'FAILED' })
  expect(rowsOf(other)).toEqual(before)
  await expect(copy(await servers.folder(), await servers.folder())).rejects.toThrow(/no log of facts/)
})

test.each([
  ['a transaction', 'update log set body = zeroblob(length) where kind = 1 and seq = 3'],
  ['a chunk', 'update chunk set bytes = zeroblob(length(bytes)) where position = 1'],
])('a log in which %s is damaged is not copied', async (_, damage) => {
  const [from, to] = [await logFolder(), await servers.folder()]
  const { sql } = opened(from)
  sql.exec(damage)
  sql.close()
  await expect(copy(from, to)).rejects.toThrow(/damaged/)
})

test('settings of a log are listed, and replaced by the next number', async () => {
  const folder = await logFolder()
  const genesis = chain.genesis.outpoint(0)
  expect([...(await readSettings({ folder }))]).toEqual([
    ['base', String(base)],
    ['genesis', genesis],
  ])
  await writeSetting({ folder }, { name: 'tracker', value: 'headers' })
  await writeSetting({ folder }, { name: 'tracker', value: 'scripts-only' })
  expect((await readSettings({ folder })).get('tracker')).toBe('scripts-only')
  await writeSetting({ folder }, 'restored')
  expect(Number((await readSettings({ folder })).get('base'))).toBeGreaterThan(base)
  const before = await readSettings({ folder })
  for (const [name, value] of [
    ['color', 'red'],
    ['base', '-5'],
    ['base', 'abc'],
    ['anchor', ''],
    ['tracker', 'nonsense'],
    ['genesis', 'ab'],
    ['DIFFICULTY', '1e3'],
  ] as const)
    await expect(writeSetting({ folder }, { name, value })).rejects.toThrow(new RegExp(name, 'i'))
  expect(await readSettings({ folder })).toEqual(before)
})
