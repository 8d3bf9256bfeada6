import { parts, ROWS_A_STATEMENT } from '../rows/columns.js'
import { rest } from '../write/rest.js'
import type { SqlValue, SqlWriter } from './reader.js'

/** What stands in a row that is told. */
type NewRecords = SqlValue | boolean | undefined

/** Inserts those rows whose key is not there. All have the same columns. */
export async function insertNew(writer: SqlWriter, table: string, rows: object[]): Promise<void> {
  const columns = Object.keys(rows[0] ?? {})
  for (const part of parts(rows, ROWS_A_STATEMENT)) {
    const places = `(${columns.map(() => '?').join(', ')})`
    await writer.run(
      `insert into ${table} (${columns.join(', ')}) values ${part.map(() => places).join(', ')}
       ${writer.isMysql ? untouched(columns) : 'on conflict do nothing'}`,
      part.flatMap((row) =>
        columns.map((column) => columnValue((row as Record<string, NewRecords>)[column])),
      ),
    )
    await rest()
  }
}

/** What leaves a row as it is. MySQL's own way to ignore a conflict ignores whatever else is wrong with a row, too. */
function untouched([column = '']: string[]): string {
  return `on duplicate key update ${column} = ${column}`
}

function columnValue(told: NewRecords): SqlValue {
  return typeof told === 'boolean' ? Number(told) : (told ?? null)
}
