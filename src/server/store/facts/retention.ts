import { existsSync } from 'node:fs'
import { Sql } from '../../../../backend/src/facts/connection.js'
import { LocalLog } from '../../../../backend/src/facts/local-log.js'
import { FACT } from '../../../../backend/src/facts/log.js'
import { nextOf, type RegisterValue, register } from '../../../../backend/src/facts/registers.js'
import { CHUNK_BYTES } from '../../../../backend/src/graph/graph-store.js'
import { sha256 } from '../../../../backend/src/graph/native-hash.js'
import { toHex } from '../../../../backend/src/protocol/bytes.js'
import { formatOutpoint, type Outpoint } from '../../../../backend/src/protocol/outpoint.js'
import { storeFiles } from '../../../../backend/src/writer/local-writer.js'
import { BackupError } from '../backup/backup-tables.js'
import { lockFolder } from '../open-database.js'
import { removeIndex } from './folder.js'

/** The two ways in which an operator removes bytes from a log: all others only add to it. */

/** A log and its index, opened alone; the index has all facts. */
async function alone<Result>(folder: string, work: (sql: Sql, log: LocalLog) => Result): Promise<Result> {
  const { log: filename, index } = storeFiles(folder)
  if (!existsSync(filename)) throw new BackupError(`there is no log of facts in ${folder}`)
  const unlock = await lockFolder(folder, 'facts')
  const sql = new Sql(index)
  try {
    // What is overwritten or deleted is zeroed in the file, too.
    sql.exec('pragma secure_delete = on')
    sql.run('attach ? as log', filename)
    sql.exec('pragma log.synchronous = full')
    const log = new LocalLog(sql, 'log')
    const meta = sql.get("select 1 from sqlite_master where name = 'meta'")
    const cursor = meta && sql.get("select value from meta where name = 'cursor'")?.value
    if (Number(cursor ?? 0) !== log.last)
      throw new BackupError('the index has not all facts yet: start the service once')
    sql.exec('begin immediate')
    const result = work(sql, log)
    sql.exec('commit')
    sql.exec('pragma log.wal_checkpoint(truncate)')
    return result
  } finally {
    sql.close()
    unlock()
  }
}

/** A body that was removed: its hash, and the outputs that it stood in. */
export interface Purged {
  sha256: string
  outpoints: string[]
}

/**
 * Removes the body of an output, and the same body of all other outputs, from the log, and blocks it: the bytes are overwritten; a
 * register keeps hash, type, length and position. The transactions are never served or proven again.
 *
 * @throws BackupError if the log has no such output, or no body that stands in it in one piece; Error if a service has it open.
 */
export async function purge(folder: string, outpoint: Outpoint, reason: string): Promise<Purged> {
  return await alone(folder, (sql, log) => {
    const found = sql.get(
      'select sha from tx cross join out on tid = tx.id where txid = ? and vout = ?',
      Buffer.from(outpoint.txid, 'hex'),
      outpoint.vout,
    )
    if (found?.sha === undefined || found.sha === null)
      throw new BackupError(`there is no content in ${formatOutpoint(outpoint)}`)
    const holders = sql.all(
      'select txid, vout, ctype, clen, coff from out cross join tx on tx.id = tid where sha = ?',
      found.sha,
    )
    if (holders.some(({ coff }) => coff === null))
      throw new BackupError('the content does not stand in its transaction in one piece')
    const hash = toHex(found.sha)
    for (const { txid, vout, ctype, clen, coff } of holders) {
      overwrite(sql, { key: txid, from: coff, length: clen })
      const value = { sha256: hash, contentType: ctype, length: clen, position: coff }
      const subject = `purged ${formatOutpoint({ txid: toHex(txid), vout })}`
      add(log, subject, value as unknown as RegisterValue)
    }
    const blocked = { blocked: true, reason, since: Date.now() }
    add(log, register.block({ kind: 'content', value: hash }), blocked)
    return {
      sha256: hash,
      outpoints: holders.map(({ txid, vout }) => formatOutpoint({ txid: toHex(txid), vout })),
    }
  })
}

function add(log: LocalLog, subject: string, value: RegisterValue): void {
  const fact = nextOf(log, subject, value)
  if (fact !== undefined) log.insert(fact)
}

/** Zeroes bytes of a transaction. */
function overwrite(sql: Sql, { key, from, length }: { key: Uint8Array; from: number; length: number }): void {
  const row = sql.get('select body from log.log where kind = ? and key = ?', FACT.transaction, key)
  if (row === undefined) return
  if (row.body !== null) {
    const body = Buffer.from(row.body).fill(0, from, from + length)
    sql.run('update log.log set body = ? where kind = ? and key = ?', body, FACT.transaction, key)
    return
  }
  for (let position = Math.floor(from / CHUNK_BYTES); position * CHUNK_BYTES < from + length; position++) {
    const start = position * CHUNK_BYTES
    const where = 'kind = ? and key = ? and position = ?'
    const chunk = sql.get(`select bytes from log.chunk where ${where}`, FACT.transaction, key, position)
    if (chunk === undefined) continue
    const bytes = Buffer.from(chunk.bytes).fill(
      0,
      Math.max(0, from - start),
      Math.max(0, from + length - start),
    )
    sql.run(
      `update log.chunk set bytes = ?, checksum = ? where ${where}`,
      ...[bytes, sha256(bytes), FACT.transaction, key, position],
    )
  }
}

/** What was dropped, or would be. */
export interface Pruned {
  transactions: number
  /** Of their raw transactions. */
  bytes: number
}

/** For how long nobody may have seen a transaction that is dropped, in milliseconds. */
const UNSEEN_FOR = 14 * 86_400_000

/**
 * Drops unproven transactions that nobody has seen for 14 days, and on which nothing is built that stays. The next start derives
 * the index again.
 *
 * @param options.keepsNames Whether mints and transfers of names stay: where nobody can be asked about them, that they are unseen
 * says nothing.
 * @throws BackupError if there is no log; Error if a service has it open.
 */
export async function prune(
  folder: string,
  { keepsNames, now = Date.now() }: { keepsNames: boolean; now?: number },
): Promise<Pruned> {
  const pruned = await alone(folder, (sql) => {
    const dropped = closedUnderChildren(sql, unseen(sql, { before: now - UNSEEN_FOR, keepsNames }))
    let bytes = 0
    for (const { txid, length } of dropped.values()) {
      bytes += length
      sql.run('delete from log.log where kind = ? and key = ?', FACT.transaction, txid)
      sql.run('delete from log.chunk where kind = ? and key = ?', FACT.transaction, txid)
      const [first, last] = [txid, Buffer.concat([txid, Buffer.alloc(36, 0xff)])]
      sql.run('delete from log.log where kind = ? and key between ? and ?', FACT.proof, first, last)
    }
    return { transactions: dropped.size, bytes }
  })
  if (pruned.transactions > 0) await removeIndex(folder)
  return pruned
}

interface Candidate {
  txid: Buffer
  length: number
}

/** By their ids in the index. */
function unseen(
  sql: Sql,
  { before, keepsNames }: { before: number; keepsNames: boolean },
): Map<number, Candidate> {
  const rows = sql.all(
    `select tx.id, tx.txid, tx.length, tx.mint from tx cross join log.log as fact on fact.kind = ? and fact.key = tx.txid
     where tx.seq is not null and tx.own is null and tx.mined is null and tx.seen = 0 and fact.at < ?`,
    FACT.transaction,
    before,
  )
  const isKept = (id: number, mint: number): boolean => keepsNames && (mint === 1 || movesName(sql, id))
  return new Map(
    rows.filter(({ id, mint }) => !isKept(id, mint)).map(({ id, txid, length }) => [id, { txid, length }]),
  )
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

/** Those on which nothing is built but others of them. */
function closedUnderChildren(sql: Sql, candidates: Map<number, Candidate>): Map<number, Candidate> {
  for (let isChanged = true; isChanged; ) {
    isChanged = false
    for (const id of candidates.keys()) {
      const children = sql.all(
        'select sid from spend cross join tx on tx.id = sid where pid = ? and tx.seq is not null',
        id,
      )
      if (children.every(({ sid }) => candidates.has(sid))) continue
      candidates.delete(id)
      isChanged = true
    }
  }
  return candidates
}
