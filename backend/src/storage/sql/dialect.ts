import type { Knex } from 'knex'

/** Whether a database is MySQL or MariaDB, where SQL differs. */
export function isMysql(knex: Knex): boolean {
  return knex.client.dialect === 'mysql'
}
