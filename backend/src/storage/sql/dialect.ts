import type { Knex } from 'knex'

/** Whether a database is MySQL or MariaDB, where SQL differs. A host that looks at factories may have none yet. */
export function isMysql(knex: Knex): boolean {
  return (knex.client as { dialect?: unknown } | undefined)?.dialect === 'mysql'
}
