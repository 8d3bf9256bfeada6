import type { Socket } from 'node:net'
import { createPool, type PoolOptions } from 'mysql2'
import type { MysqlQuery } from './mysql-log.js'

/** Timeouts for connecting and for idle connections, whose server may be gone, in milliseconds. */
const CONNECT_WITHIN = 5000
const IDLE = 30_000
/** Values that do not fit are refused, not truncated, whatever the server's defaults. */
const SETUP = "set session sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'"

/** Connections to MySQL or MariaDB. */
export interface MysqlPool {
  query: MysqlQuery
  close(): Promise<void>
}

export function mysqlPool(options: PoolOptions): MysqlPool {
  const pool = createPool({ connectTimeout: CONNECT_WITHIN, ...options })
  pool.on('connection', (connection) => {
    connection.query(SETUP)
    const { stream } = connection as unknown as { stream: Socket }
    stream.setTimeout(IDLE, () => stream.destroy())
  })
  const promised = pool.promise()
  return { query: (sql, values) => promised.query(sql, values), close: () => promised.end() }
}
