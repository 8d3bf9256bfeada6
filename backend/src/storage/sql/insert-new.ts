import type { Knex } from 'knex'
import { parts } from './columns.js'
import { rest } from './rest.js'

/** So that one statement ends soon: nobody else is served before. */
const ROWS_AN_INSERT = 50

/** Inserts those rows whose key is not there. */
export async function insertNew(trx: Knex.Transaction, table: string, rows: object[]): Promise<void> {
  for (const part of parts(rows, ROWS_AN_INSERT)) {
    await trx(table).insert(part).onConflict().ignore()
    await rest()
  }
}
