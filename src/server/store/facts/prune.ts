import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { Sql } from '../../../../backend/src/facts/connection.js'
import { LocalLog } from '../../../../backend/src/facts/local-log.js'
import { FACT } from '../../../../backend/src/facts/log.js'
import { latestOf, register } from '../../../../backend/src/facts/registers.js'
import { appended, endOf, grouped, type Place } from '../../../../backend/src/facts/shared-log.js'
import { parentsFirst } from '../../../../backend/src/graph/ancestry.js'
import { toHex } from '../../../../backend/src/protocol/bytes.js'
import { storeFiles } from '../../../../backend/src/writer/local-writer.js'
import { placeIn } from '../../../../backend/src/writer/mirror.js'
import { type PrunedFact, prunedPlaces, prunedRow } from '../../../../backend/src/writer/state-changes.js'
import { storeFolder } from '../../config/place.js'
import { admissionOptions } from '../admission-options.js'
import { openWriter } from '../start-writer.js'
import { completeIndex, type DeriveOptions, isIndex, lockBuild, treeIn } from './build-index.js'
import { changeFolder, lockStore, readFolder, removeIndexes, requireLog } from './folder.js'
import type { CommandLog } from './folder-log.js'
import { changeLog, logPlaceIn } from './log-place.js'

export interface Pruned {
  transactions: number
  /** The length of their raw transactions. */
  bytes: number
}

interface Dropped {
  /** The length of the raw transaction. */
  length: number
  facts: PrunedFact[]
}

interface Candidate {
  id: number
  txid: Buffer
  length: number
}

/** A transaction is dropped once nobody has seen it for this long, in milliseconds. */
const UNSEEN_FOR = 14 * 86_400_000

export interface PruneOptions extends DeriveOptions {
  /** Whether to keep mints and transfers of names: if no source can be asked about them, being unseen means nothing. */
  keepsNames: boolean
  now?: number
}

/**
 * Drops unproven transactions that nobody has seen for 14 days, unless something that stays is built on them. Indexes are derived
 * again, by the next start, and by each gateway that shares the log.
 *
 * @throws as {@link changeLog} and {@link completeIndex}.
 */
export async function prune(options: PruneOptions): Promise<Pruned> {
  const place = logPlaceIn(options.config)
  const folder = storeFolder(options.config)
  if ('folder' in place) requireLog(folder)
  else await mkdir(folder, { recursive: true })
  // An index that is being built would keep dropped transactions.
  const unlockBuild = lockBuild(folder)
  try {
    if ('folder' in place) return await pruneFolder(folder, options)
    const unlock = await lockStore(folder)
    try {
      return await changeLog(place, (log) => pruneShared(log, { ...options, folder }))
    } finally {
      unlock()
    }
  } finally {
    unlockBuild()
  }
}

async function pruneFolder(folder: string, options: PruneOptions): Promise<Pruned> {
  const { index } = storeFiles(folder)
  let dropped: Dropped[] = []
  const prepare = async (): Promise<void> => {
    if (existsSync(index) && !(await isIndex(index, folder))) removeIndexes(folder)
    await completeIndex(index, options)
    dropped = unneeded(folder, options)
    // Before anything else: an index with more than the log has would still count as that log's.
    if (dropped.length > 0) removeIndexes(folder)
  }
  const discard = async (log: CommandLog): Promise<void> => {
    if (dropped.length > 0) await log.discard(dropped.flatMap(({ facts }) => facts.map(({ seq }) => seq)))
  }
  await changeFolder(folder, discard, prepare)
  return pruned(dropped)
}

/**
 * First, rows that name the dropped transactions are inserted right after the last row that this host has read: so nobody has built
 * on them meanwhile. Each gateway that reads the rows drops its copy. Then the log drops the bytes. If others have written in
 * between, their rows are read, and the search starts over.
 */
async function pruneShared(log: CommandLog, options: PruneOptions & { folder: string }): Promise<Pruned> {
  const { folder } = options
  const all: Dropped[] = []
  for (;;) {
    const { place, removed } = await completeCopy(options)
    // Including leftovers of an interrupted command.
    await log.discard(removed)
    const dropped = unneeded(folder, options)
    // By now, this host's copy has dropped all of them.
    if (dropped.length === 0) return pruned(all)
    let { seq } = place
    for (const some of grouped(dropped, DROPPED_AT_ONCE)) {
      const rows = some.flatMap(({ facts }) => facts.map(prunedRow))
      const batch = appended(seq, rows)
      if (!(await log.insert(batch))) break
      all.push(...some)
      seq = endOf(batch).seq
    }
  }
}

/** How many transactions are dropped at once: the rows that name them are stored in one document. */
const DROPPED_AT_ONCE = 5000

/**
 * Brings this host's copy of a log in a database, and its index, up to date.
 *
 * @returns How far the log was read, and the places of facts that it says to remove.
 */
async function completeCopy(
  options: DeriveOptions & { folder: string },
): Promise<{ place: Place; removed: number[] }> {
  const { config, signal, onProgress = () => {}, folder } = options
  const writer = await openWriter({ folder, shared: config })
  try {
    await withSignal(writer.logRead, signal)
    const own = await readFolder(folder, ({ log }) => treeIn(log, config))
    writer.onStatus(({ done }) => onProgress(done))
    writer.deriveBy(admissionOptions(own))
    await withSignal(writer.opened, signal)
  } finally {
    await writer.close()
  }
  return await readFolder(folder, async ({ sql }) => ({ place: placeIn(sql), removed: prunedPlaces(sql) }))
}

async function withSignal(work: Promise<void>, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted()
  await Promise.race([work, once(signal, 'abort')])
  signal.throwIfAborted()
}

function pruned(dropped: readonly Dropped[]): Pruned {
  return { transactions: dropped.length, bytes: dropped.reduce((sum, { length }) => sum + length, 0) }
}

function unneeded(folder: string, { now = Date.now(), keepsNames }: PruneOptions): Dropped[] {
  const { index, log } = storeFiles(folder)
  const sql = new Sql(index)
  try {
    sql.run('attach ? as log', log)
    const candidates = unseen(sql, { before: now - UNSEEN_FOR, keepsNames })
    return childrenFirst(sql, withoutChildren(sql, candidates)).map(({ txid, length }) => {
      const rows = sql.all(FACTS_OF, FACT.transaction, txid, FACT.proof, txid, after(txid))
      return { length, facts: rows as PrunedFact[] }
    })
  } finally {
    sql.close()
  }
}

const FACTS_OF = `select seq, kind, key from log.log where kind = ? and key = ?
  union all select seq, kind, key from log.log where kind = ? and key between ? and ?`

/** A key after those of all proofs of a transaction. */
function after(txid: Buffer): Buffer {
  return Buffer.concat([txid, Buffer.alloc(36, 0xff)])
}

function childrenFirst(sql: Sql, candidates: Map<number, Candidate>): Candidate[] {
  const byId = new Map([...candidates.values()].map((candidate) => [String(candidate.id), candidate]))
  const childrenOf = ({ id }: Candidate): string[] =>
    sql.all('select distinct sid from spend where pid = ?', id).map(({ sid }) => String(sid))
  // The same walk, with children instead of parents.
  return parentsFirst(byId, childrenOf)
}

/** Unseen transactions by id. The transaction of the genesis is never one. */
function unseen(
  sql: Sql,
  { before, keepsNames }: { before: number; keepsNames: boolean },
): Map<number, Candidate> {
  const log = new LocalLog(sql, 'log')
  const genesis = String(latestOf(log, register.setting('genesis'))?.value)
  const rows = sql.all(
    `select tx.id, tx.txid, tx.length, tx.mint from tx cross join log.log as fact on fact.kind = ? and fact.key = tx.txid
     where tx.seq is not null and tx.own is null and tx.mined is null and tx.seen = 0 and fact.at < ?`,
    ...[FACT.transaction, before],
  )
  const isKept = ({ id, txid, mint }: (typeof rows)[number]): boolean =>
    genesis.startsWith(toHex(txid)) ||
    (latestOf(log, register.sighting(toHex(txid)))?.at ?? 0) >= before ||
    (keepsNames && (mint === 1 || movesName(sql, id)))
  return new Map(rows.filter((row) => !isKept(row)).map(({ id, txid, length }) => [id, { id, txid, length }]))
}

function movesName(sql: Sql, id: number): boolean {
  const row = sql.get(
    `select 1 as one from spend cross join out on out.tid = spend.pid and out.vout = spend.vout
     cross join out as first on first.oid = out.lin cross join name on name.tid = first.tid and name.vout = first.vout
     where spend.sid = ? limit 1`,
    id,
  )
  return row !== undefined
}

/** The candidates on which only other candidates are built; pending transactions count as built on them. */
function withoutChildren(sql: Sql, candidates: Map<number, Candidate>): Map<number, Candidate> {
  const waiting = [...candidates.keys()]
  for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
    const candidate = candidates.get(id)
    if (candidate === undefined || !isBuiltOn(sql, candidate, candidates)) continue
    candidates.delete(id)
    for (const { pid } of sql.all('select distinct pid from spend where sid = ?', id)) waiting.push(pid)
  }
  return candidates
}

function isBuiltOn(sql: Sql, { id, txid }: Candidate, others: ReadonlyMap<number, Candidate>): boolean {
  const children = sql.all(
    'select sid from spend cross join tx on tx.id = sid where pid = ? and tx.seq is not null',
    id,
  )
  return (
    children.some(({ sid }) => !others.has(sid)) ||
    sql.get('select 1 as one from log.pending_spend where txid = ? limit 1', txid) !== undefined
  )
}
