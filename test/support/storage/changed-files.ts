import { Sql, type SqlValue } from '../../../backend/src/facts/connection.js'
import { sha256 } from '../../../backend/src/graph/native-hash.js'
import { storeFiles } from '../../../backend/src/writer/local-writer.js'

/** Changes the log or the index in a folder behind the back of the server, as a disk or a tool might. @returns How many rows. */
export function changeStore(
  { dataDir }: { dataDir: string },
  file: 'log' | 'index',
  ...[statement, ...values]: [statement: string, ...values: SqlValue[]]
): number {
  const sql = new Sql(storeFiles(dataDir)[file])
  try {
    return sql.run(statement, ...values)
  } finally {
    sql.close()
  }
}

/** The transaction that a body is read out of. */
export function bodyHolder(dataDir: string, body: Uint8Array): Buffer {
  const sql = new Sql(storeFiles(dataDir).index)
  try {
    return Buffer.from(
      sql.get('select txid from out cross join tx on tx.id = tid where sha = ?', sha256(body))?.txid,
    )
  } finally {
    sql.close()
  }
}

/** How many chunks the log has of a transaction. */
export function chunksInLog({ dataDir }: { dataDir: string }, txid: string): number {
  const sql = new Sql(storeFiles(dataDir).log)
  try {
    return Number(
      sql.get('select count(*) as count from chunk where kind = 1 and key = ?', Buffer.from(txid, 'hex'))
        ?.count,
    )
  } finally {
    sql.close()
  }
}
