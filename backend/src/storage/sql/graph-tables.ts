import type { Knex } from 'knex'
import type { GraphTables } from '../write/graph-tables.js'
import { memoizedTables } from '../write/memoized-tables.js'
import { exclusiveWrite } from './exclusive-write.js'
import { lineagesIn } from './lineages.js'
import { mapsIn } from './maps.js'
import { outputTablesIn } from './output-tables.js'
import { knexWriter } from './reader.js'
import { transactionTablesIn } from './transaction-tables.js'

/**
 * What one write asks of a database of SQL, with what it has written so far.
 *
 * @param derives Whether the admissions of every transaction whose bytes are held are derived.
 */
export function tablesIn(trx: Knex.Transaction, derives = false): GraphTables {
  const writer = knexWriter(trx)
  return {
    transactions: memoizedTables(transactionTablesIn(trx, { writer, derives })),
    outputs: outputTablesIn(writer),
    rows: { ...lineagesIn(writer), ...mapsIn(writer) },
  }
}

/** Writes to them with nobody else writing meanwhile; see {@link exclusiveWrite}. */
export async function writeTables<Result>(
  knex: Knex,
  write: (tables: GraphTables) => Promise<Result>,
  derives = false,
): Promise<Result> {
  return await exclusiveWrite(knex, (trx) => write(tablesIn(trx, derives)))
}
