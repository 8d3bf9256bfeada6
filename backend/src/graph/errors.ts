import { CodedError } from '../protocol/coded-error.js'
import type { Tier } from './conflict-resolution.js'

/**
 * Why a transaction is inactive: the transaction that counts instead of it or of an ancestor, and how far that is known to the
 * network; or which of it and its ancestors the network rejected.
 */
export interface Reason {
  txid: string
  tier: Tier | 'rejected'
}

/** A transaction does not count: it or an ancestor conflicts with another one, or was rejected. */
export class LostConflictError extends CodedError {
  override readonly name = 'LostConflictError'
  readonly code = 'CONFLICT'

  constructor(
    readonly txid: string,
    readonly reason: Reason,
  ) {
    const { txid: other, tier } = reason
    super(
      tier === 'rejected'
        ? `${txid} does not count: the network rejected ${other === txid ? 'it' : `${other}, which it is built on`}`
        : `${txid} conflicts with ${other}, which counts: they, or transactions they build on, spend the same output`,
    )
  }
}

/** A question that has none of the forms of a lookup service. */
export class QueryError extends CodedError {
  override readonly name = 'QueryError'
  readonly code = 'BAD_BODY'
}

/** The store is unavailable for now; it may be tried again. */
export class StoreUnavailableError extends CodedError {
  override readonly name = 'StoreUnavailableError'
  readonly code = 'STORE_UNAVAILABLE'

  constructor(cause: unknown) {
    super('the database does not respond; try again', { cause })
  }
}

/** The source of block headers did not answer, so nothing is known about a proof: the caller may try again. */
export class ChainTrackerError extends CodedError {
  override readonly name = 'ChainTrackerError'
  readonly code = 'NOT_READY'
  readonly headers = { 'Retry-After': '5' }
}

/** Stored bytes are missing or corrupt, according to their hash. A restart does not mend that. */
export class DamagedError extends CodedError {
  override readonly name = 'DamagedError'
  readonly code = 'DAMAGED'

  /** @param owner What the bytes belong to: in hex, the SHA-256 of a body, a txid, or another key of a fact. */
  constructor(
    readonly owner: string,
    problem: string,
  ) {
    super(`the store has damaged bytes, ${owner}: ${problem}`)
    if (found.size < MOST_FOUND) found.add(owner)
  }
}

/** How many damaged blobs a process remembers. */
const MOST_FOUND = 100
const found = new Set<string>()

/** The owners of the bytes that this process has found damaged since its start, up to a hundred. */
export function damagedBlobs(): string[] {
  return [...found]
}

/** The codes by which the drivers and the system report a full disk. */
const STORE_FULL_CODES = new Set([
  'SQLITE_FULL',
  'SQLITE_IOERR_SHMSIZE',
  // 1021 and 1114 of MySQL and MariaDB.
  'ER_DISK_FULL',
  'ER_RECORD_FILE_FULL',
  // OutOfDiskSpace of MongoDB (https://github.com/mongodb/mongo/blob/master/src/mongo/base/error_codes.yml).
  '14031',
  'ENOSPC',
  'EDQUOT',
])
/** How many causes of an error are followed. */
const MAX_CAUSES = 5

/** Codes for a file that is no database, or has corrupt pages. */
const FILE_CODES = new Set(['SQLITE_CORRUPT', 'SQLITE_CORRUPT_INDEX', 'SQLITE_NOTADB'])
const DAMAGE_CODES = new Set(['DAMAGED', ...FILE_CODES])

/** Whether an error, or one of its causes, says that the store has no space left. The error may be of another realm. */
export function isStoreFull(error: unknown): boolean {
  return hasCode(error, STORE_FULL_CODES)
}

/** Whether an error, or one of its causes, says that the store is damaged. */
export function isDamage(error: unknown): boolean {
  return hasCode(error, DAMAGE_CODES)
}

/** Whether an error, or one of its causes, says that SQLite found damage in one of its files. */
export function isDamagedFile(error: unknown): boolean {
  return hasCode(error, FILE_CODES)
}

function hasCode(error: unknown, codes: ReadonlySet<string>): boolean {
  let each = error
  for (let depth = 0; depth < MAX_CAUSES && typeof each === 'object' && each !== null; depth++) {
    const { code, cause } = each as { code?: unknown; cause?: unknown }
    if (codes.has(String(code))) return true
    each = cause
  }
  return false
}

/** Reorganisations interrupted a read each time it was tried. */
export class UnstableReadError extends Error {
  override readonly name = 'UnstableReadError'
}
