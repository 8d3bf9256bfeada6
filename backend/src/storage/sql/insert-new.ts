import type { Knex } from 'knex'
import { parts, ROWS_A_STATEMENT } from './columns.js'
import { rest } from './rest.js'

/** Inserts those rows whose key is not there. */
export async function insertNew(trx: Knex.Transaction, table: string, rows: object[]): Promise<void> {
  for (const part of parts(rows, ROWS_A_STATEMENT)) {
    await trx(table).insert(part).onConflict().ignore()
    await rest()
  }
}
