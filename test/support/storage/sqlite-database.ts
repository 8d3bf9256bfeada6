import { join } from 'node:path'
import createKnex, { type Knex } from 'knex'
import BetterSqlite3Client from 'knex/lib/dialects/better-sqlite3/index.js'
import Libsql from 'libsql'
import type { SqlReader } from '../../../backend/src/storage/sql/database.js'

/** knex's better-sqlite3 dialect on libsql, which speaks its API and ships its binaries through the registry. */
class LibsqlClient extends BetterSqlite3Client {
  override _driver(): unknown {
    return Libsql
  }
}

/** As other drivers of knex give bytes: libsql gives an `ArrayBuffer` for some. */
function withBuffers(answer: unknown): unknown {
  if (Array.isArray(answer)) return answer.map(withBuffers)
  if (answer === null || typeof answer !== 'object') return answer
  const columns = Object.entries(answer)
  if (!columns.some(([, value]) => value instanceof ArrayBuffer)) return answer
  return Object.fromEntries(
    columns.map(([name, value]) => [name, value instanceof ArrayBuffer ? Buffer.from(value) : value]),
  )
}

/** The connections of a store on SQL. */
export interface SqlConnections {
  writer: Knex
  reader: SqlReader
}

/** SQLite in a folder, as a host of the plugin has it; reads have a connection of their own, and see the last committed state. */
export async function openSqlite(folder: string): Promise<SqlConnections & { close(): Promise<void> }> {
  const filename = join(folder, 'minetree.sqlite')
  const writer = createKnex({
    client: LibsqlClient as unknown as typeof Knex.Client,
    connection: { filename },
    useNullAsDefault: true,
    pool: { min: 1, max: 1 },
    postProcessResponse: withBuffers,
  })
  await writer.raw('pragma journal_mode = wal')
  const connection = new Libsql(filename)
  connection.exec('pragma query_only = on; pragma busy_timeout = 5000;')
  return {
    writer,
    reader: {
      all: async (sql, values) => connection.prepare(sql).all(values),
      first: async (sql, values) => connection.prepare(sql).get(values),
    },
    async close() {
      connection.close()
      await writer.destroy()
    },
  }
}
