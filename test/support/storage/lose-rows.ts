import { Sql, type SqlValue } from '../../../backend/src/facts/connection.js'
import { FACT } from '../../../backend/src/facts/log.js'
import { sha256 } from '../../../backend/src/graph/native-hash.js'
import type { Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { storeFiles } from '../../../backend/src/writer/local-writer.js'

// What a store in a folder loses behind its back. Each returns how many rows there were.

/**
 * Deletes chunks of a body, which is read out of its transaction: there, a chunk of it begins in one and ends in the next.
 *
 * @param position That of one chunk, which is read no more, and neither is the one after it; by default all of them.
 */
export function loseChunks(dataDir: string, body: Uint8Array, position?: number): number {
  const { index, log } = storeFiles(dataDir)
  const sql = new Sql(index)
  const txid = sql.get('select txid from out join tx on tx.id = tid where sha = ?', sha256(body))?.txid
  sql.close()
  const which = position === undefined ? '' : ` and position = ${position + 1}`
  return run(log, `delete from chunk where kind = ? and key = ?${which}`, FACT.transaction, txid)
}

/** Deletes what the index has of a node. */
export function loseNode(dataDir: string, { txid, vout }: Outpoint): number {
  const statement = 'delete from node where tid = (select id from tx where txid = ?) and vout = ?'
  return run(storeFiles(dataDir).index, statement, Buffer.from(txid, 'hex'), vout)
}

function run(path: string, statement: string, ...values: SqlValue[]): number {
  const sql = new Sql(path)
  try {
    return sql.run(statement, ...values)
  } finally {
    sql.close()
  }
}
