import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { Sql } from '../../../../backend/src/facts/connection.js'
import type { LocalLog } from '../../../../backend/src/facts/local-log.js'
import { type Fact, isTransaction } from '../../../../backend/src/facts/log.js'
import { isPurged } from '../../../../backend/src/facts/registers.js'
import { CHANGE } from '../../../../backend/src/facts/shared-log.js'
import { DamagedError, isDamage } from '../../../../backend/src/graph/errors.js'
import { canonicalRows } from '../../../../backend/src/index/canonical.js'
import { toHex } from '../../../../backend/src/protocol/bytes.js'
import { isIndexOf, openIndex } from '../../../../backend/src/writer/catch-up.js'
import { storeFiles } from '../../../../backend/src/writer/local-writer.js'
import { storeFolder } from '../../config/place.js'
import { type DeriveOptions, treeIn } from './build-index.js'
import { type Checked, checkShared, type FactDamage, type LogCheckOptions } from './check-shared.js'
import { damageOf, readLog } from './folder.js'
import { logPlaceIn } from './log-place.js'
import { FACT_NAMES, isSound } from './verify-fact.js'

/** Facts that are applied in one transaction. */
const PAGE = { limit: 500, maxBytes: 8 * 1024 * 1024 }

export type FactCheckOptions = Omit<DeriveOptions, 'onProgress'> & LogCheckOptions

/**
 * Verifies every fact against its key, and compares the index with one that is derived again, in a temporary folder, while the
 * service runs. Of a log in a database, what this host has copied of it is compared with it, too.
 *
 * @returns How many facts, how long their bodies are, and whether there is an index, and it was compared.
 * @throws what {@link readLog} and `withSharedLog` throw; the reason of the signal.
 */
export async function checkFacts(options: FactCheckOptions): Promise<Checked & { isCompared: boolean }> {
  const [folder, place] = [storeFolder(options.config), logPlaceIn(options.config)]
  let isDamaged = false
  const onDamage = (damage: FactDamage): void => {
    isDamaged = true
    options.onDamage(damage)
  }
  const check = async (
    log: LocalLog,
    sql: Sql,
    checked?: Checked,
  ): Promise<Checked & { isCompared: boolean }> => {
    // What the log in a database has is counted there.
    const own = await checkLog(log, sql, { ...options, onDamage, ...(checked && { onProgress() {} }) })
    // Of damaged facts follows no index to compare with.
    const isCompared = !isDamaged && (await checkIndex(log, options))
    return { ...(checked ?? own), isCompared }
  }
  // Not from one snapshot: a service that writes meanwhile could not keep its WAL short.
  const reading = { isSnapshot: false }
  if ('folder' in place) return await readLog(folder, check, reading)
  const isCopied = existsSync(storeFiles(folder).log)
  if (!isCopied) return { ...(await checkShared(place, { ...options, onDamage })), isCompared: false }
  return await readLog(
    folder,
    async (copy, sql) => await check(copy, sql, await checkShared(place, { ...options, onDamage, copy })),
    reading,
  )
}

async function checkLog(
  log: LocalLog,
  sql: Sql,
  { signal, onDamage, onProgress }: LogCheckOptions,
): Promise<Checked> {
  const { last } = log
  const checked = { facts: 0, bytes: 0 }
  for (let place = 1; place <= last; place++) {
    signal.throwIfAborted()
    const fact = readable(() => readFact(log, place))
    if (fact === 'damaged') onDamage({ ...nameOf(log, place), problem: 'damaged' })
    else if (fact !== undefined) {
      checked.bytes += fact.body.length
      checked.facts++
    }
    if (place % 100 === 0) await setImmediate()
    onProgress({ facts: checked.facts, share: place / last })
  }
  for (const { txid } of sql.all('select txid from pending')) {
    const raw = readable(() => sql.get('select raw from pending where txid = ?', txid)?.raw)
    // It may have become a fact since.
    if (raw === 'damaged' || (raw !== undefined && !isTransaction(raw, txid)))
      onDamage({ kind: 'pending transaction', id: toHex(txid), problem: 'damaged' })
  }
  return checked
}

/** @returns Undefined if there is none at that place. @throws DamagedError if it is not what its key says, or not found by it. */
function readFact(log: LocalLog, place: number): Fact | undefined {
  const [fact] = log.after(place - 1, { limit: 1, maxBytes: 0 })
  if (fact?.seq !== place) return undefined
  if ((fact.kind as number) === CHANGE) return undefined
  const isWhole = isSound(fact) || isPurged(log, fact.key)
  if (!isWhole || !log.has(fact.kind, fact.key))
    throw new DamagedError(toHex(fact.key), FACT_NAMES[fact.kind])
  return fact
}

function readable<Found>(read: () => Found): Found | 'damaged' {
  try {
    return read()
  } catch (error) {
    if (isDamage(error)) return 'damaged'
    throw error
  }
}

function nameOf(log: LocalLog, place: number): Pick<FactDamage, 'kind' | 'id'> {
  const found = readable(() => log.keyAt(place))
  if (found === undefined || found === 'damaged') return { kind: 'fact', id: String(place) }
  return { kind: FACT_NAMES[found.kind], id: toHex(found.key) }
}

/** @returns False if there is no index: of a copy that no service was started on, or after a setting was replaced. */
async function checkIndex(log: LocalLog, options: FactCheckOptions): Promise<boolean> {
  const { index: filename } = storeFiles(storeFolder(options.config))
  if (!existsSync(filename)) return false
  const folder = await mkdtemp(join(tmpdir(), 'minetree-check-'))
  const [index, derived] = [new Sql(filename), new Sql(join(folder, 'index.db'))]
  const onDamage = (): void => options.onDamage({ kind: 'index', id: filename, problem: 'damaged' })
  try {
    if (damageOf(filename) !== undefined) onDamage()
    else return await compareIndex(index, { ...options, log, derived })
  } catch (error) {
    if (!isDamage(error)) throw error
    onDamage()
  } finally {
    index.close()
    derived.close()
    await rm(folder, { recursive: true, force: true })
  }
  return true
}

async function compareIndex(
  index: Sql,
  { derived, ...options }: FactCheckOptions & { log: LocalLog; derived: Sql },
): Promise<boolean> {
  const { log, onDamage, config, admission, signal } = options
  index.exec('pragma query_only = on')
  if (!isIndexOf({ log, indexFile: index })) return false
  derived.exec('pragma journal_mode = off; pragma synchronous = off;')
  const deriving = { log, config, admission, signal }
  const cursor = (): number => Number(index.get("select value from meta where name = 'cursor'")?.value)
  const first = cursor()
  await derive(derived, { ...deriving, to: first })
  // Only what is left is done beside one snapshot, which would have the WAL of a service that writes grow.
  index.exec('begin')
  const to = cursor()
  // The service has begun to derive it again.
  if (to < first || !isIndexOf({ log, indexFile: index })) return false
  await derive(derived, { ...deriving, to })
  const [stored, wanted] = [index, derived].map((sql) => canonicalRows(sql, { scores: true }))
  for (const table of Object.keys(wanted ?? {})) {
    const rows = difference(stored?.[table] ?? [], wanted?.[table] ?? [])
    if (rows > 0) onDamage({ kind: 'index', id: table, problem: 'differs', rows })
  }
  return true
}

/** Derives an index up to a place: the log may have gone on since. */
async function derive(
  indexFile: Sql,
  { log, config, admission, to, signal }: DeriveOptions & { log: LocalLog; to: number },
): Promise<void> {
  const { rules } = admission(await treeIn(log, config))
  const index = openIndex({ log, indexFile }, { rules })
  while (index.cursor < to) {
    signal.throwIfAborted()
    const facts = log.after(index.cursor, PAGE).filter(({ seq }) => seq <= to)
    if (facts.length === 0) return
    indexFile.exec('begin')
    index.apply(facts)
    index.flush()
    indexFile.exec('commit')
    await setImmediate()
  }
}

/** How many rows one list has that the other has not, either way. */
function difference(some: string[], others: string[]): number {
  const [one, other] = [new Set(some), new Set(others)]
  return some.filter((row) => !other.has(row)).length + others.filter((row) => !one.has(row)).length
}
