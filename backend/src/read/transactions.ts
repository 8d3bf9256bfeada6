import type { Row, Sql } from '../facts/connection.js'
import type { LocalLog } from '../facts/local-log.js'
import {
  FACT,
  isTransaction,
  NO_NOTES_BYTES,
  PROOF_ROOT,
  proofOf,
  readTransactionFact,
  readUint32,
} from '../facts/log.js'
import { isPurged, register } from '../facts/registers.js'
import { BlockedError } from '../graph/blocklist.js'
import { type Tier, tierOf } from '../graph/conflict-resolution.js'
import { DamagedError, type Reason } from '../graph/errors.js'
import { CHUNK_BYTES, type TransactionRecord } from '../graph/records.js'
import type { RawTransaction } from '../graph/stored-transaction.js'
import { reasonIn as reasonInIndex } from '../index/active.js'
import { isOnBestChain } from '../index/headers.js'
import { registerIn } from '../index/schema.js'
import type { Outpoint } from '../protocol/outpoint.js'
import { blobOf, hexOf, type Reader } from './reader.js'

/** Stored transactions: those of the log, even before they are in the index, and pending ones. */
export class Transactions {
  constructor(private readonly reader: Reader) {}

  get(txid: string): TransactionRecord | undefined {
    return this.reader.answer((sql, log) => {
      const key = blobOf(txid)
      const { body } = log.get(FACT.transaction, key) ?? {}
      return transactionRecord({ sql, log }, txid, { body, proof: indexedProof(sql, key) })
    })
  }

  raw(txid: string): RawTransaction | undefined {
    return rawTransaction(this.reader, txid)
  }

  /** Whether a transaction is stored. Reads none of its bytes. */
  has(txid: string): boolean {
    return this.reader.answer((sql) =>
      [IN_INDEX, PENDING_STATUS, IN_LOG].some((statement) => sql.get(statement, blobOf(txid)) !== undefined),
    )
  }

  /** The height of the block that a transaction is proven to be in; undefined if it is unproven. */
  heightOf(txid: string): number | undefined {
    return this.reader.answer((sql) => heightOf(sql, txid))
  }

  /** The transaction that spends an outpoint and counts. There is one at most. */
  spenderOf(outpoint: Outpoint): string | undefined {
    return this.reader.answer((sql) => spenderOf(sql, outpoint))
  }

  /**
   * Why a stored transaction does not count; undefined if it counts or is unknown. Pending ones are not in the index: one does not
   * count if it or an ancestor was rejected, or spends a coin that an active one spends, or if it lost to another pending one.
   */
  reasonAgainst(txid: string): Reason | undefined {
    return this.reader.answer((sql) => reasonIn(sql, txid))
  }

  /** How far stored transactions are known to the network, by themselves or by a descendant. */
  tiers(txids: string[]): Map<string, Tier> {
    const found = this.reader.all([...new Set(txids)], (sql, txid): [string, Tier][] => {
      const tier = tierIn(sql, txid)
      return tier === undefined ? [] : [[txid, tier]]
    })
    return new Map(found)
  }
}

const IN_INDEX = 'select id, own, mined, seen from tx where txid = ? and seq is not null'
const SIGHTED = 'select said from tx where txid = ?'
const IN_LOG = `select 1 from log.log where kind = ${FACT.transaction} and key = ?`
const PENDING = 'select txid, raw, waiting from log.pending where txid = ?'
export const PENDING_STATUS = 'select txid, waiting, proven from log.pending where txid = ?'

/** Only a mint spends a node. */
const SPENDER = `select spender.txid from tx cross join spend on pid = tx.id cross join tx as spender on spender.id = sid
  where tx.txid = ? and vout = ? and spender.active = 1 and (spender.mint = 1
    or not exists (select 1 from node where node.tid = pid and node.vout = spend.vout))
  limit 1`

export function spenderOf(sql: Sql, { txid, vout }: Outpoint): string | undefined {
  const row = sql.get(SPENDER, blobOf(txid), vout)
  return row && hexOf(row.txid)
}

function heightOf(sql: Sql, txid: string): number | undefined {
  const key = blobOf(txid)
  const row = sql.get(IN_INDEX, key)
  return row === undefined ? pendingHeight(sql, sql.get(PENDING_STATUS, key)) : (row.own ?? undefined)
}

function tierIn(sql: Sql, txid: string): Tier | undefined {
  const key = blobOf(txid)
  const row = sql.get(IN_INDEX, key)
  if (row !== undefined) return tierOf({ mined: row.mined ?? undefined, seen: row.seen === 1 })
  const pending = sql.get(PENDING_STATUS, key)
  if (pending === undefined) return undefined
  return tierOf({ mined: pendingHeight(sql, pending), seen: sql.get(SIGHTED, key)?.said === 1 })
}

/** @param fact.body Undefined if it is not in the log. @returns Undefined if it was purged, or is not pending either. */
function transactionRecord(
  { sql, log }: { sql: Sql; log: LocalLog },
  txid: string,
  { body, proof }: { body: Uint8Array | undefined; proof: Pick<TransactionRecord, 'proof'> },
): TransactionRecord | undefined {
  const key = blobOf(txid)
  const row = body === undefined ? sql.get(PENDING, key) : undefined
  const raw = body === undefined ? row?.raw : readTransactionFact({ key, body }).raw
  if (raw === undefined) return undefined
  if (isTransaction(raw, key)) return { txid, raw, ...(row ? pendingProof(sql, row) : proof) }
  if (isPurged(log, key)) return undefined
  throw new DamagedError(txid, 'its hash does not match')
}

function rawTransaction(reader: Reader, txid: string): RawTransaction | undefined {
  const key = Buffer.from(txid, 'hex')
  return reader.answer((sql, log) => {
    const proof = indexedProof(sql, key)
    const stored = log.outline(FACT.transaction, key)
    if (stored?.body !== null) {
      const record = transactionRecord({ sql, log }, txid, { body: stored?.body, proof })
      if (record === undefined) return stored && purged(txid, { length: stored.length, proof })
      const { raw, ...rest } = record
      return { ...rest, length: raw.length, chunks: () => [{ at: 0, bytes: raw }] }
    }
    if (isPurged(log, key)) return purged(txid, { length: stored.length, proof })
    const read = (log: LocalLog, from: number, length: number): Uint8Array => {
      const bytes = log.slice(FACT.transaction, key, { from, length })
      if (bytes === undefined) throw new DamagedError(txid, 'it is missing')
      return bytes
    }
    const end = stored.length - NO_NOTES_BYTES
    const length = end - readUint32(read(log, end, NO_NOTES_BYTES), 0)
    return {
      ...{ txid, length, ...proof },
      *chunks(from = 0) {
        for (let at = from - (from % CHUNK_BYTES); at < length; at += CHUNK_BYTES) {
          const size = Math.min(CHUNK_BYTES, length - at)
          yield { at, bytes: reader.answer((_, log) => read(log, at, size)) }
        }
      },
    }
  })
}

/** A transaction from which content was removed: everything but its bytes. */
function purged(
  txid: string,
  { length, proof }: { length: number; proof: Pick<TransactionRecord, 'proof'> },
): RawTransaction {
  return {
    ...{ txid, length, ...proof },
    chunks() {
      throw new BlockedError('content')
    },
  }
}

/** The counting proof of a transaction; of several at one height the last, as the chain had its block last. */
function indexedProof(sql: Sql, key: Buffer): Pick<TransactionRecord, 'proof'> {
  const row = sql.get(PROOF, key)
  return row === undefined ? {} : { proof: proofOf(row) }
}

const PROOF = `select height, ${PROOF_ROOT} as root, body as merkle_path from tx cross join proof on tid = id cross join log.log as log on log.seq = proof.seq
  where txid = ? and proof.seq = (select max(seq) from proof as counting where counting.tid = id and height = own and ok = 1)`

/** The height of a pending transaction's counting proof. */
export function pendingHeight(sql: Sql, row: Row | undefined): number | undefined {
  return row && countingProof(sql, row)?.height
}

function pendingProof(sql: Sql, row: Row): Pick<TransactionRecord, 'proof'> {
  const counting = countingProof(sql, row)
  return counting === undefined ? {} : { proof: proofOf(counting) }
}

/** The counting proof of a pending transaction. The index judges proofs only when the transaction enters the log. */
function countingProof(sql: Sql, row: Row): Row | undefined {
  const proofs = sql.all(PENDING_PROOFS, row.txid)
  if (proofs.length === 0 || registerIn(sql, register.setting('tracker')) !== 'headers') return proofs[0]
  return proofs.find(({ height, root }) => isOnBestChain(sql, { height, root }))
}

const PENDING_PROOFS =
  'select height, root, merkle_path from log.pending_proof where txid = ? order by n desc'
const PENDING_CONFLICT = `select spender from log.pending_spend
  where txid = ? and vout = ? and waiting = 0 and spender <> ? limit 1`
const SPENT_BY_PENDING = 'select txid, vout from log.pending_spend where spender = ?'

function reasonIn(sql: Sql, txid: string): Reason | undefined {
  const waiting = [txid]
  const visited = new Set(waiting)
  for (let each = waiting.pop(); each !== undefined; each = waiting.pop()) {
    const key = Buffer.from(each, 'hex')
    if (sql.get(IN_INDEX, key) !== undefined) {
      const reason = reasonInIndex(sql, each)
      if (reason !== undefined) return reason
      continue
    }
    const status = sql.get(PENDING_STATUS, key)
    if (status === undefined) continue
    if (sql.get(SIGHTED, key)?.said === 0 && pendingHeight(sql, status) === undefined)
      return { txid: each, tier: 'rejected' }
    for (const row of sql.all(SPENT_BY_PENDING, key)) {
      const parent = hexOf(row.txid)
      const spender = spenderOf(sql, { txid: parent, vout: row.vout })
      if (spender !== undefined && spender !== txid)
        return { txid: spender, tier: tierIn(sql, spender) ?? 'unseen' }
      const conflict = status.waiting ? sql.get(PENDING_CONFLICT, row.txid, row.vout, key) : undefined
      if (conflict !== undefined) return { txid: hexOf(conflict.spender), tier: 'unseen' }
      if (!visited.has(parent)) waiting.push(parent)
      visited.add(parent)
    }
  }
  return undefined
}
