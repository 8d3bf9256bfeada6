/** A transaction that does not count, as another spends what it spends, or what it is built on spends. Both are txids. */
export class LostConflictError extends Error {
  override readonly name = 'LostConflictError'

  constructor(
    readonly txid: string,
    readonly winner: string,
  ) {
    super(`${txid} loses to ${winner}: both spend the same, or one of them is built on what does`)
  }
}

/** A question that this lookup service has no form for; the message says which forms there are. */
export class QueryError extends Error {
  readonly code = 'BAD_BODY'
  override readonly name = 'QueryError'
}

/** The database cannot be reached, or had no turn for a write: nothing of it was written, or it may be told again. */
export class StoreUnavailableError extends Error {
  override readonly name = 'StoreUnavailableError'

  constructor(cause: unknown) {
    super('the database does not answer; try again', { cause })
  }
}

/** What the engines say, by the names that their drivers have for it, and the system. */
const CODES = new Set([
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
/** How far an error is followed to what caused it. */
const MAX_CAUSES = 5

/** Whether an error, or what caused it, says that a store has no space left. It may be of another realm. */
export function isStoreFull(error: unknown): boolean {
  let each = error
  for (let depth = 0; depth < MAX_CAUSES && typeof each === 'object' && each !== null; depth++) {
    const { code, cause } = each as { code?: unknown; cause?: unknown }
    if (CODES.has(String(code))) return true
    each = cause
  }
  return false
}
