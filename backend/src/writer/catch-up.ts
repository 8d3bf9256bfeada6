import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Sql } from '../facts/connection.js'
import type { LocalLog } from '../facts/local-log.js'
import { FACT, type Fact, isIntactTransaction } from '../facts/log.js'
import { hasPurged, isPurged, latestOf, purgedAt, register, TREE_SETTINGS } from '../facts/registers.js'
import { DamagedError } from '../graph/errors.js'
import { Index, type IndexOptions } from '../index/apply.js'
import { countersIn, keyText } from '../index/journal.js'
import { SCHEMA } from '../index/schema.js'
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
 * Opens the index of a log. It is emptied, to be derived again ({@link catchUp}), if it was derived from another log, from facts
 * that are gone, or by other rules. Readers may have it open meanwhile.
 */
export function openIndex({ log, indexFile }: Derivation, options: Omit<IndexOptions, 'tracker'>): Index {
  // Tables that were just made lack only the names of what they are derived from.
  if (metaOf(indexFile)?.size === 0 && countersIn(indexFile).cursor === 0) nameRules({ log, indexFile })
  else if (!isIndexOf({ log, indexFile })) emptyIndex({ log, indexFile })
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

/** Creates the tables of an index, if missing, so that readers find them before it is known by which rules it is derived. */
export function makeIndex(indexFile: Sql): void {
  if (metaOf(indexFile) === undefined) indexFile.exec(`begin; ${SCHEMA} commit`)
}

/**
 * Applies the facts that an index lacks, in bounded steps with a commit each, so an interruption costs one step. Reads continue.
 *
 * @param options.to The place of the last fact to apply; by default, the last of the log.
 * @param options.onProgress Gets the share of the log that the index has: 0 to 1.
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
 * @param options.onApplied Called before the changes are discarded, so that it can take them.
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

/** Never derives from damaged facts, which would be served as genuine. */
function assertIntact(log: LocalLog, fact: Fact): void {
  if (fact.kind !== FACT.transaction || isIntactTransaction(fact) || isPurged(log, fact.key)) return
  throw new DamagedError(toHex(fact.key), 'its hash does not match')
}

/** Replaces all tables without reading their pages, which may be damaged. */
export function emptyIndex({ log, indexFile }: Derivation): void {
  indexFile.exec('pragma writable_schema = on; begin immediate; delete from sqlite_master;')
  indexFile.exec('pragma writable_schema = reset')
  indexFile.exec(SCHEMA)
  nameRules({ log, indexFile })
  indexFile.exec('commit; vacuum;')
}

function nameRules({ log, indexFile }: Derivation): void {
  indexFile.run("insert into meta (name, value) values ('log', ?), ('rules', ?)", log.id, rulesOf(log))
}

/** Whether an index, of this version by its name, was derived from this log and by its rules. If so, it lacks at most the latest facts. */
export function isIndexOf({ log, indexFile }: Derivation): boolean {
  const meta = metaOf(indexFile)
  if (meta?.get('log') !== log.id || meta.get('rules') !== rulesOf(log)) return false
  const { cursor, key } = countersIn(indexFile)
  return key === keyAt(log, cursor)
}

function metaOf(indexFile: Sql): Map<string, unknown> | undefined {
  if (indexFile.get("select 1 as one from sqlite_master where name = 'meta'") === undefined) return undefined
  return new Map(indexFile.all('select name, value from meta').map(({ name, value }) => [name, value]))
}

/** Kind and key of the fact at a place; undefined if there is none, empty at place 0. */
function keyAt(log: LocalLog, seq: number): string | undefined {
  const fact = log.keyAt(seq)
  return seq === 0 ? '' : fact && keyText(fact)
}

/** The settings that all derivation depends on: a change of one cannot be applied like other facts. */
function rulesOf(log: LocalLog): string {
  return JSON.stringify(TREE_SETTINGS.map((name) => latestOf(log, register.setting(name))?.value ?? null))
}

/** What decides which proofs count. */
export function trackerOf(log: LocalLog): IndexOptions['tracker'] {
  const value = latestOf(log, register.setting('tracker'))?.value
  return value === 'headers' || value === 'scripts-only' ? value : 'tracker'
}
