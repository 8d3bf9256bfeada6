import type { Knex } from 'knex'
import type { GraphRecords } from '../../graph/records.js'
import type { Decision } from '../../graph/standing.js'
import { turnedBy } from '../telling.js'
import type { SqlReader } from './sql-reader.js'

/** How often a branch has turned in this store: several reads go together where none has turned between them. */
const SETTING = 'turns'

export async function turnsOf(reader: SqlReader): Promise<number> {
  const row = await reader.first('select value from graph_settings where name = ?', [SETTING])
  return Number(row?.value ?? 0)
}

/**
 * Counts a decision that changes what was answered before.
 *
 * @returns How many transactions answered before and do not now, or the other way round.
 */
export async function countTurn(
  trx: Knex.Transaction,
  decision: Decision,
  records: Pick<GraphRecords, 'transactions'>,
): Promise<number> {
  const turned = turnedBy(decision, records)
  if (turned === 0) return 0
  const row = await trx('graph_settings').where({ name: SETTING }).first('value')
  const value = String(Number(row?.value ?? 0) + 1)
  await trx('graph_settings').insert({ name: SETTING, value }).onConflict(['name']).merge(['value'])
  return turned
}
