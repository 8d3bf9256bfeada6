import type { Knex } from 'knex'
import { parts, ROWS_A_STATEMENT } from '../columns.js'
import { rest } from '../rest.js'
import { isMysql } from './dialect.js'

/** Inserts those rows whose key is not there. */
export async function insertNew(trx: Knex, table: string, rows: object[]): Promise<void> {
  for (const part of parts(rows, ROWS_A_STATEMENT)) {
    const conflict = trx(table).insert(part).onConflict()
    await (isMysql(trx) ? conflict.merge(untouched(trx, part)) : conflict.ignore())
    await rest()
  }
}

/** What leaves a row as it is. MySQL's own way to ignore a conflict ignores whatever else is wrong with a row, too. */
function untouched(
  trx: Knex,
  [row = {}]: object[],
): Record<string, Knex.Ref<string, Record<string, string>>> {
  const [column = ''] = Object.keys(row)
  return { [column]: trx.ref(column) }
}
