import type { Knex } from 'knex'
import type { SqlReader, SqlValue } from './reader.js'
import { whileAvailable } from './unavailable.js'

type Done = (error: unknown, rows: unknown) => void
type Ask = (sql: string, values: SqlValue[], done: Done) => void

/** What of mysql2 is used here, of its connections and its pools alike. */
interface Asked {
  query: Ask
  /** Prepares a statement once for each connection; `mysql`, the driver before mysql2, has none. */
  execute?: Ask
}

/**
 * With more values it is a list, which may be of any length: each length would be another statement to prepare, and
 * servers keep so many and no more.
 */
const VALUES_OF_PREPARED = 6

/**
 * Reads on MySQL and MariaDB past knex and past promises of the driver, which take longer than a short read does, with
 * statements that the server has read once.
 *
 * @param take Runs with what can be asked.
 * @throws StoreUnavailableError where the database is away.
 */
export function mysqlReader(
  take: <Result>(work: (asked: Asked) => Promise<Result>) => Promise<Result>,
): SqlReader {
  const all: SqlReader['all'] = (sql, values) =>
    whileAvailable(() => take((asked) => answerOf(asked, sql, values)))
  return { all, first: async (sql, values) => (await all(sql, values))[0] }
}

/** Reads on the connections that knex has, where it is on MySQL. */
export function mysqlReaderOf({ client }: Knex): SqlReader {
  return mysqlReader(async (work) => {
    const connection: Asked = await client.acquireConnection()
    try {
      return await work(connection)
    } finally {
      client.releaseConnection(connection)
    }
  })
}

function answerOf(asked: Asked, sql: string, values: SqlValue[]): Promise<object[]> {
  const how = asked.execute !== undefined && values.length <= VALUES_OF_PREPARED ? 'execute' : 'query'
  return new Promise((resolve, reject) => {
    asked[how]?.(sql, values, (error, rows) => (error ? reject(error) : resolve(rows as object[])))
  })
}
