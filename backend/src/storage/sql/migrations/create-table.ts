import type { Knex } from 'knex'
import { isMysql } from '../database.js'

/** Bytes of any length. MySQL's `blob` ends at 64 KiB. */
export function anyBytes(knex: Knex): string {
  return isMysql(knex) ? 'longblob' : 'blob'
}

/** Names and the like, whose bytes say in which order they come. */
export function asciiText(knex: Knex): string {
  return isMysql(knex) ? 'varchar(255) character set ascii collate ascii_bin' : 'text'
}

/**
 * Creates a table that is not there. Two lookup services of one host may both bring it; and where DDL is not
 * transactional, a try may end half-way. Text compares by its bytes everywhere: MySQL's default folds case and pads, and
 * is whatever its operator has set.
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
