import { Sql, type SqlValue } from '../../../backend/src/facts/connection.js'
import { FACT } from '../../../backend/src/facts/log.js'
import { sha256 } from '../../../backend/src/graph/native-hash.js'
import { storeFiles } from '../../../backend/src/writer/local-writer.js'

// What stands in the files of a store, and what is changed there behind the back of the server, as a disk or a tool might.

type StoreFile = keyof ReturnType<typeof storeFiles>

function within<Result>(dataDir: string, file: StoreFile, ask: (sql: Sql) => Result): Result {
  const sql = new Sql(storeFiles(dataDir)[file])
  try {
    return ask(sql)
  } finally {
    sql.close()
  }
}

/** @returns How many rows it changed. */
export function changeStore(
  dataDir: string,
  file: StoreFile,
  ...[statement, ...values]: [statement: string, ...values: SqlValue[]]
): number {
  return within(dataDir, file, (sql) => sql.run(statement, ...values))
}

/** The transaction that a body is read out of. */
export function bodyHolder(dataDir: string, body: Uint8Array): Buffer {
  const statement = 'select txid from out cross join tx on tx.id = tid where sha = ?'
  return Buffer.from(within(dataDir, 'index', (sql) => sql.get(statement, sha256(body))?.txid))
}

/** How many chunks the log has of a transaction. */
export function chunksInLog(dataDir: string, txid: string): number {
  const statement = 'select count(*) as count from chunk where kind = ? and key = ?'
  const key = Buffer.from(txid, 'hex')
  return Number(within(dataDir, 'log', (sql) => sql.get(statement, FACT.transaction, key)?.count))
}

/**
 * Deletes chunks of a body, which is read out of its transaction: there, a chunk of it begins in one and ends in the next.
 *
 * @param position That of one chunk, which is read no more, and neither is the one after it; by default all of them.
 * @returns How many there were.
 */
export function loseChunks(dataDir: string, body: Uint8Array, position?: number): number {
  const which = position === undefined ? '' : ` and position = ${position + 1}`
  const statement = `delete from chunk where kind = ? and key = ?${which}`
  return changeStore(dataDir, 'log', statement, FACT.transaction, bodyHolder(dataDir, body))
}
