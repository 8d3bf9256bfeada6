import { existsSync } from 'node:fs'
import { Sql } from '../../../../backend/src/facts/connection.js'
import { LocalLog } from '../../../../backend/src/facts/local-log.js'
import { FACT } from '../../../../backend/src/facts/log.js'
import { latestOf, register } from '../../../../backend/src/facts/registers.js'
import { toHex } from '../../../../backend/src/protocol/bytes.js'
import { storeFiles } from '../../../../backend/src/writer/local-writer.js'
import { completeIndex, type DeriveOptions, isIndex, lockBuild } from './build-index.js'
import { changeFolder, removeIndexes, requireLog } from './folder.js'

/** What was dropped. */
export interface Pruned {
  transactions: number
  /** Of their raw transactions. */
  bytes: number
}

interface Candidate {
  /** Its id in the index. */
  id: number
  txid: Buffer
  length: number
}

/** For how long nobody may have seen a transaction that is dropped, in milliseconds. */
const UNSEEN_FOR = 14 * 86_400_000

export interface PruneOptions extends DeriveOptions {
  /** Whether mints and transfers of names stay: where nobody can be asked about them, that they are unseen says nothing. */
  keepsNames: boolean
  now?: number
}

/**
 * Drops unproven transactions that nobody has seen for 14 days, and on which nothing is built that stays. The index is removed, and
 * derived again by the next start.
 *
 * @throws what {@link changeFolder} and {@link completeIndex} throw.
 */
export async function prune({ keepsNames, now = Date.now(), ...options }: PruneOptions): Promise<Pruned> {
  const { dataDir } = options.config
  const { index, log: logFile } = storeFiles(dataDir)
  requireLog(dataDir)
  // An index that is being built would keep what is dropped.
  const unlockBuild = lockBuild(dataDir)
  let dropped: Candidate[] = []
  const prepare = async (): Promise<void> => {
    if (existsSync(index) && !(await isIndex(index, dataDir))) removeIndexes(dataDir)
    await completeIndex(index, options)
    dropped = unneeded({ index, log: logFile }, { before: now - UNSEEN_FOR, keepsNames })
    // First of all: an index that knows more than the log would be taken for one of it.
    if (dropped.length > 0) removeIndexes(dataDir)
  }
  try {
    return await changeFolder(
      dataDir,
      async (log) => {
        if (dropped.length > 0)
          await log.discard(
            dropped.map(({ txid }) => txid),
            FACT.transaction,
          )
        for (const { txid } of dropped) {
          const proofs = [txid, Buffer.concat([txid, Buffer.alloc(36, 0xff)])]
          log.sql.run('delete from log where kind = ? and key between ? and ?', FACT.proof, ...proofs)
        }
        return { transactions: dropped.length, bytes: dropped.reduce((sum, { length }) => sum + length, 0) }
      },
      prepare,
    )
  } finally {
    unlockBuild()
  }
}

function unneeded(
  files: { index: string; log: string },
  options: { before: number; keepsNames: boolean },
): Candidate[] {
  const sql = new Sql(files.index)
  try {
    sql.run('attach ? as log', files.log)
    return withoutChildren(sql, unseen(sql, options))
  } finally {
    sql.close()
  }
}

/** By their ids. The tree stands on its genesis, whatever is known of it. */
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

/** Those on which nothing is built but others of them, pending transactions included. */
function withoutChildren(sql: Sql, candidates: Map<number, Candidate>): Candidate[] {
  const waiting = [...candidates.keys()]
  for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
    const candidate = candidates.get(id)
    if (candidate === undefined || !isBuiltOn(sql, candidate, candidates)) continue
    candidates.delete(id)
    for (const { pid } of sql.all('select distinct pid from spend where sid = ?', id)) waiting.push(pid)
  }
  return [...candidates.values()]
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
