import { join } from 'node:path'
import createKnex, { type Knex } from 'knex'
import BetterSqlite3Client from 'knex/lib/dialects/better-sqlite3/index.js'
import Libsql from 'libsql'

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

/** SQLite in a folder, as a host of the plugin may have it. */
export async function openSqlite(folder: string): Promise<{ writer: Knex; close(): Promise<void> }> {
  const writer = createKnex({
    client: LibsqlClient as unknown as typeof Knex.Client,
    connection: { filename: join(folder, 'minetree.sqlite') },
    useNullAsDefault: true,
    pool: { min: 1, max: 1 },
    postProcessResponse: withBuffers,
  })
  await writer.raw('pragma journal_mode = wal')
  return { writer, close: () => writer.destroy() }
}
