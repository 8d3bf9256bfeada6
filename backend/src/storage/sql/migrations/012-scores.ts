import type { Knex } from 'knex'
import { SCORES } from '../../read/admissions.js'
import { replaceTimes } from '../../write/admission-tables.js'
import { knexWriter } from '../database.js'
import { rowWriter } from '../rows.js'

/** Scores that a counter gives, in place of the times of admission. */
export const scores = {
  name: '012-scores',

  async up(knex: Knex): Promise<void> {
    await replaceTimes(rowWriter(knexWriter(knex)))
  },

  async down(knex: Knex): Promise<void> {
    // The other lookup service of a host may have been first.
    if (await knex.schema.hasTable('graph_settings')) await knex('graph_settings').where(SCORES).delete()
  },
}
