import type { Knex } from 'knex'
import type { EngineOutputs, OpenEngineOutputs } from '../../graph/engine-outputs.js'
import type { SqlDatabase } from '../../graph/host-database.js'
import { bytesOf } from '../rows/columns.js'
import { anyOf, isMysql, knexReader, mysqlReader, type SqlReader } from './database.js'

/** What the `KnexStorage` of every engine has by these names, so far. */
const COLUMNS = [
  'outputs.id',
  'outputs.txid',
  'outputs.outputindex',
  'outputs.topic',
  'transactions.txid',
  'transactions.beef',
]

const COLUMNS_ON_MYSQL = `select concat(table_name, '.', column_name) as name from information_schema.columns
  where table_schema = database() and table_name in ('outputs', 'transactions')`
const COLUMNS_ON_SQLITE = `select 'outputs.' || name as name from pragma_table_info('outputs')
  union all select 'transactions.' || name from pragma_table_info('transactions')`

/** The storage of an engine on the host's knex. */
export function engineOutputsIn(knex: Knex): OpenEngineOutputs {
  return () => opened({ reader: knexReader(knex), isOnMysql: isMysql(knex), close: async () => {} })
}

/** The storage of an engine beside an index on MongoDB; undefined if it cannot be reached. */
export function engineOutputsBeside(database: SqlDatabase | undefined): OpenEngineOutputs | undefined {
  if (database !== undefined) return engineOutputsIn(database as Knex)
  // The programs of LARS and CARS pass a factory nothing else, and have the engine's database from here.
  const { KNEX_URL: url = '' } = process.env
  return url.startsWith('mysql:') ? () => connected(url) : undefined
}

/** @param url `mysql://user:password@host:port/database`. */
async function connected(url: string): Promise<EngineOutputs | undefined> {
  // Only here: others need no driver of SQL.
  const { createConnection } = await import('mysql2')
  const connection = createConnection({ uri: url })
  // Whatever fails, a statement says so.
  connection.on('error', () => {})
  return await opened({
    reader: mysqlReader((work) => work(connection)),
    isOnMysql: true,
    close: () => new Promise((resolve) => connection.end(() => resolve())),
  })
}

async function opened({
  reader,
  isOnMysql,
  close,
}: {
  reader: SqlReader
  isOnMysql: boolean
  close: () => Promise<void>
}): Promise<EngineOutputs | undefined> {
  try {
    const columns = await reader.all(isOnMysql ? COLUMNS_ON_MYSQL : COLUMNS_ON_SQLITE, [])
    const names = new Set(columns.map(({ name }) => String(name).toLowerCase()))
    if (COLUMNS.every((name) => names.has(name))) return { ...outputsIn(reader, isOnMysql), close }
  } catch (error) {
    await close()
    throw error
  }
  await close()
  return undefined
}

function outputsIn(reader: SqlReader, isOnMysql: boolean): Omit<EngineOutputs, 'close'> {
  // By an index on topics, it would sort all of them for each page.
  const outputs = isOnMysql ? 'outputs force index (primary)' : 'outputs'
  return {
    async page({ topics, after, limit }) {
      const rows = await reader.all(
        `select id, topic, txid, outputIndex as vout from ${outputs}
         where id > ? and topic in (${anyOf(topics)}) order by id limit ${limit}`,
        [after, ...topics],
      )
      return rows.map(({ id, topic, txid, vout }) => ({
        id: Number(id),
        topic,
        outpoint: { txid, vout: Number(vout) },
      }))
    },
    async beefOf(txid) {
      const row = await reader.first('select beef from transactions where txid = ?', [txid])
      return row?.beef ? bytesOf(row.beef) : undefined
    },
  }
}
