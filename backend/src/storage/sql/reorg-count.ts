import type { Knex } from 'knex'
import type { SqlReader } from './reader.js'

/** How often a branch has turned in this store: several reads go together where none has turned between them. */
const SETTING = 'turns'

export async function reorgCountOf(reader: SqlReader): Promise<number> {
  const row = await reader.first('select value from graph_settings where name = ?', [SETTING])
  return Number(row?.value ?? 0)
}

/** Counts that one has turned. */
export async function countReorg(trx: Knex.Transaction): Promise<void> {
  const row = await trx('graph_settings').where({ name: SETTING }).first('value')
  const value = String(Number(row?.value ?? 0) + 1)
  await trx('graph_settings').insert({ name: SETTING, value }).onConflict(['name']).merge(['value'])
}
