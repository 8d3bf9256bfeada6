import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Sql } from '../facts/connection.js'
import type { LocalLog } from '../facts/local-log.js'
import { FACT, type Fact, isIntactTransaction } from '../facts/log.js'
import { hasPurged, isPurged, latestOf, purgedAt, register, TREE_SETTINGS } from '../facts/registers.js'
import { DamagedError } from '../graph/errors.js'
import { Index, type IndexOptions } from '../index/apply.js'
import { countersIn, keyText } from '../index/journal.js'
import { INDEX_VERSION, SCHEMA } from '../index/schema.js'
import type { TransactionSource } from '../index/transactions.js'
import { toHex } from '../protocol/bytes.js'

/** How many facts are applied in one commit, and about how many bytes of them. */
const PAGE = 500
const PAGE_BYTES = 8 * 1024 * 1024

export interface Derivation {
  log: LocalLog
  indexFile: Sql
}

/**
 * Opens the index of a log. One that was derived from another log, or from a part that is no longer in this one, by other rules or
 * by another version of this code, is emptied: it is to be derived again ({@link catchUp}). Readers may have it open meanwhile.
 */
export function openIndex({ log, indexFile }: Derivation, options: Omit<IndexOptions, 'tracker'>): Index {
  if (!isIndexOf({ log, indexFile })) emptyIndex({ log, indexFile })
  const source: TransactionSource = {
    transaction: (txid) => log.get(FACT.transaction, txid)?.body,
    proofKey: (seq) => log.keyAt(seq)?.key ?? lacking(seq),
    refresh() {
      if (!hasPurged(log)) return
      source.purgedAt = (output) => purgedAt(log, output)
      source.isPurged = (txid) => isPurged(log, txid)
    },
  }
  source.refresh?.()
  return new Index(indexFile, source, { ...options, tracker: trackerOf(log) })
}

function lacking(seq: number): never {
  throw new Error(`the log lacks the proof at ${seq}`)
}

/** Makes the tables of an index, if there are none, so that a reader finds them. */
export function makeIndex({ log, indexFile }: Derivation): void {
  if (metaOf(indexFile) === undefined) emptyIndex({ log, indexFile })
}

/**
 * Applies the facts that an index lacks, in bounded steps, each a commit: what interrupts it costs a step. Reads go on beside it.
 *
 * @param options.to The place of the last fact to apply; by default, the last of the log.
 * @param options.onProgress Gets how much of the log the index has: 0 to 1.
 */
export async function catchUp(
  { log, indexFile }: Derivation,
  options: { index: Index; to?: number; onProgress: (done: number) => void; isAborted: () => boolean },
): Promise<void> {
  const { index, to, onProgress, isAborted } = options
  while (!isAborted() && applyNext({ log, indexFile }, index, { ...(to !== undefined && { to }) })) {
    onProgress(index.cursor / log.last)
    await nextTurn()
  }
}

/**
 * Applies some of the facts that an index lacks, in one commit.
 *
 * @param options.onApplied May take what that has changed.
 * @returns Whether there were any.
 */
export function applyNext(
  { log, indexFile }: Derivation,
  index: Index,
  { onApplied, to = Number.POSITIVE_INFINITY }: { onApplied?: () => void; to?: number } = {},
): boolean {
  const page = log.after(index.cursor, { limit: PAGE, maxBytes: PAGE_BYTES })
  const facts = page.filter(({ seq }) => seq <= to)
  if (facts.length === 0) return false
  for (const fact of facts) assertIntact(log, fact)
  index.refresh()
  const mark = index.mark()
  indexFile.exec('begin immediate')
  try {
    index.apply(facts)
    index.flush()
    indexFile.exec('commit')
  } catch (error) {
    if (indexFile.inTransaction) indexFile.exec('rollback')
    index.restore(mark)
    throw error
  }
  onApplied?.()
  index.takeAdmitted()
  index.takeFlips()
  return true
}

/** What is damaged is never derived from: it would be served as if it were genuine. */
function assertIntact(log: LocalLog, fact: Fact): void {
  if (fact.kind !== FACT.transaction || isIntactTransaction(fact) || isPurged(log, fact.key)) return
  throw new DamagedError(toHex(fact.key), 'its hash is another one')
}

/** Looks at no page of what is there, as these may be damaged: nothing refers to them any more, and they go. */
export function emptyIndex({ log, indexFile }: Derivation): void {
  indexFile.exec('pragma writable_schema = on; begin immediate; delete from sqlite_master;')
  indexFile.exec('pragma writable_schema = reset')
  indexFile.exec(SCHEMA)
  setMeta(indexFile, { version: INDEX_VERSION, log: log.id, rules: rulesOf(log) })
  indexFile.exec('commit; vacuum;')
}

/** Whether an index was derived from this log, by its rules and this version of the code: then it only may lack the last facts. */
export function isIndexOf({ log, indexFile }: Derivation): boolean {
  const meta = metaOf(indexFile)
  const isDerived =
    meta?.get('version') === INDEX_VERSION && meta.get('log') === log.id && meta.get('rules') === rulesOf(log)
  if (!isDerived) return false
  const { cursor, key } = countersIn(indexFile)
  return key === keyAt(log, cursor)
}

function metaOf(indexFile: Sql): Map<string, unknown> | undefined {
  if (indexFile.get("select 1 as one from sqlite_master where name = 'meta'") === undefined) return undefined
  return new Map(indexFile.all('select name, value from meta').map(({ name, value }) => [name, value]))
}

function setMeta(indexFile: Sql, values: Record<string, string | number>): void {
  for (const [name, value] of Object.entries(values))
    indexFile.run(
      'insert into meta (name, value) values (?, ?) on conflict (name) do update set value = excluded.value where value <> excluded.value',
      ...[name, value],
    )
}

/** Which fact is at a place; undefined if there is none, and empty before the first. */
function keyAt(log: LocalLog, seq: number): string | undefined {
  const fact = log.keyAt(seq)
  return seq === 0 ? '' : fact && keyText(fact)
}

/** What derivation depends on beside the facts as they come: a change of it is no fact that could be applied. */
function rulesOf(log: LocalLog): string {
  return JSON.stringify(TREE_SETTINGS.map((name) => latestOf(log, register.setting(name))?.value ?? null))
}

/** What decides which proofs count. */
export function trackerOf(log: LocalLog): IndexOptions['tracker'] {
  const value = latestOf(log, register.setting('tracker'))?.value
  return value === 'headers' || value === 'scripts-only' ? value : 'tracker'
}
