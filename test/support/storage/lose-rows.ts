import { join } from 'node:path'
import { Sql, type SqlValue } from '../../../backend/src/facts/connection.js'
import { FACT } from '../../../backend/src/facts/log.js'
import { sha256 } from '../../../backend/src/graph/native-hash.js'
import type { Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { storeFiles } from '../../../backend/src/writer/local-writer.js'
import { holdsFacts } from './fact-rows.js'

// What a store in a folder loses behind its back. Each returns how many rows there were.

/**
 * Deletes chunks of a body: on facts, those of the transaction that it is read out of, in which a chunk begins in one and ends in
 * the next.
 *
 * @param position That of one chunk, which is read no more, and on facts the one after it neither; by default all of them.
 */
export function loseChunks(dataDir: string, body: Uint8Array, position?: number): number {
  const hash = sha256(body)
  const which = position === undefined ? '' : ' and position = ?'
  const at = (offset: number): number[] => (position === undefined ? [] : [position + offset])
  if (!holdsFacts(dataDir))
    return run(
      join(dataDir, 'minetree.sqlite'),
      `delete from graph_pieces where owner = ?${which}`,
      hash,
      ...at(0),
    )
  const { index, log } = storeFiles(dataDir)
  const sql = new Sql(index)
  const txid = sql.get('select txid from out join tx on tx.id = tid where sha = ?', hash)?.txid
  sql.close()
  return run(log, `delete from chunk where kind = ? and key = ?${which}`, FACT.transaction, txid, ...at(1))
}

/** Deletes what the index has of a node. */
export function loseNode(dataDir: string, { txid, vout }: Outpoint): number {
  const key = Buffer.from(txid, 'hex')
  return holdsFacts(dataDir)
    ? run(
        storeFiles(dataDir).index,
        'delete from node where tid = (select id from tx where txid = ?) and vout = ?',
        ...[key, vout],
      )
    : run(join(dataDir, 'minetree.sqlite'), 'delete from graph_nodes where txid = ? and vout = ?', key, vout)
}

function run(path: string, statement: string, ...values: SqlValue[]): number {
  const sql = new Sql(path)
  try {
    return sql.run(statement, ...values)
  } finally {
    sql.close()
  }
}
