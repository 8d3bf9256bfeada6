import type { Knex } from 'knex'
import { isMysql } from '../database.js'

/** Bytes of any length. MySQL's `blob` has at most 64 KiB. */
export function anyBytes(knex: Knex): string {
  return isMysql(knex) ? 'longblob' : 'blob'
}

/** ASCII text that sorts by its bytes. */
export function asciiText(knex: Knex): string {
  return isMysql(knex) ? 'varchar(255) character set ascii collate ascii_bin' : 'text'
}

export async function hasIndex(knex: Knex, name: string): Promise<boolean> {
  const found = isMysql(knex)
    ? knex('information_schema.statistics').whereRaw('table_schema = database()').where({ index_name: name })
    : knex('sqlite_master').where({ type: 'index', name })
  return (await found.first(knex.raw('1'))) !== undefined
}

/**
 * Creates a missing table. Two lookup services of one host may both create it, and if DDL is not transactional, an attempt may
 * end half-way. Text compares by its bytes on every engine; MySQL's default is up to its operator, and may fold case and pad.
 */
export async function createTable(
  knex: Knex,
  name: string,
  build: (table: Knex.CreateTableBuilder) => void,
): Promise<void> {
  if (await knex.schema.hasTable(name)) return
  await knex.schema.createTable(name, (table) => {
    if (isMysql(knex)) {
      table.charset('utf8mb4')
      table.collate('utf8mb4_bin')
    }
    build(table)
  })
}
