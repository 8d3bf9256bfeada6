import type { Knex } from 'knex'
import { isListed, UNKNOWN_RECENCY } from '../../../graph/listings.js'
import { COUNTS } from '../../read/listings.js'
import { bytesOf, parts, ROWS_A_STATEMENT } from '../../rows/columns.js'
import { contentOf } from '../../rows/record-rows.js'
import { insertNew, isMysql, knexWriter } from '../database.js'
import { hasIndex } from './create-table.js'

const TABLES = ['graph_names', 'graph_outputs'] as const
const ORDER = ['recency', 'txid', 'vout']

/** What lists of the newest names and inscriptions are sorted by, and how many of each there are. */
export const listings = {
  name: '010-listings',

  async up(knex: Knex): Promise<void> {
    for (const table of TABLES) {
      // The index comes last: where DDL is not transactional, an attempt may have ended before it.
      if (await hasIndex(knex, indexName(table))) continue
      if (!(await knex.schema.hasColumn(table, 'recency')))
        await knex.schema.alterTable(table, (altered) => {
          altered.bigInteger('recency')
        })
      await fill(knex, table)
      await index(knex, table)
    }
    if ((await knex('graph_transactions').first('txid')) !== undefined) await count(knex)
  },

  async down(knex: Knex): Promise<void> {
    // The other lookup service of a host may have been first.
    if (!(await knex.schema.hasTable('graph_outputs'))) return
    for (const table of TABLES) {
      if (!(await knex.schema.hasColumn(table, 'recency'))) continue
      await knex.schema.alterTable(table, (altered) => {
        altered.dropIndex(ORDER, indexName(table))
        altered.dropColumn('recency')
      })
    }
    await knex('graph_settings').where(COUNTS).delete()
  },
}

async function fill(knex: Knex, table: (typeof TABLES)[number]): Promise<void> {
  const isInscribed = table === 'graph_outputs' ? 'where content_sha256 is not null and carrier = 0' : ''
  await knex.raw(
    `update ${table} set recency = coalesce((
       select coalesce(height, ${UNKNOWN_RECENCY} + case when arrival > 0 then arrival else 0 end)
       from graph_transactions as own where own.txid = ${table}.txid
     ), ${UNKNOWN_RECENCY}) ${isInscribed}`,
  )
  if (table === 'graph_names') return
  const types = await knex(table).distinct('content_type').whereNotNull('content_sha256')
  const unlisted = types
    .filter(({ content_type }) => !isListed({ content: contentOf({ content_type, content_sha256: '' }) }))
    .map(({ content_type }) => Buffer.from(bytesOf(content_type)))
  for (const part of parts(unlisted, ROWS_A_STATEMENT))
    await knex(table).whereIn('content_type', part).update({ recency: null })
}

/** Most outputs are in no list: SQLite leaves them out of the index. */
async function index(knex: Knex, table: (typeof TABLES)[number]): Promise<void> {
  const isIn = isMysql(knex) ? '' : 'where recency is not null'
  await knex.raw(`create index ${indexName(table)} on ${table} (${ORDER.join(', ')}) ${isIn}`)
}

function indexName(table: string): string {
  return `${table}_${ORDER.join('_')}_index`
}

async function count(knex: Knex): Promise<void> {
  const total = async (rows: Knex.QueryBuilder): Promise<number> =>
    Number((await rows.count({ total: '*' }).first())?.total ?? 0)
  const counts = {
    names: await total(knex('graph_names')),
    inscriptions: await total(knex('graph_outputs').whereNotNull('recency')),
    transactions: await total(knex('graph_transactions')),
  }
  await insertNew(knexWriter(knex), 'graph_settings', [{ ...COUNTS, value: JSON.stringify(counts) }])
}
