import type { Socket } from 'node:net'
import { createPool } from 'mysql2'
import { MongoLog } from '../../../backend/src/facts/mongo-log.js'
import { MysqlLog } from '../../../backend/src/facts/mysql-log.js'
import type { SharedLog, SharedLogOptions } from '../../../backend/src/facts/shared-log.js'
import type { Config } from '../config/config.js'
import { openClient } from './open-mongo.js'

/** Where a log is that several gateways share. */
export type SharedLogPlace = Pick<Config, 'knexUrl' | 'mongoUrl'>

/** A gateway writes one batch at a time, and others read chunks of bodies. */
const CONNECTIONS = 4
/** How long connecting may take, in milliseconds, and how long a connection may be idle: one that lost its other end is. */
const CONNECT_WITHIN = 5000
const IDLE = 30_000
/** Whatever the defaults of the server: values that do not fit are refused instead of truncated. */
const SETUP = "set session sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'"

/**
 * Opens the log in a database, or makes it.
 *
 * @throws What the driver throws; StoreUnavailableError if MongoDB does not answer; CopyError (`identify`).
 */
export async function openSharedLog(
  { knexUrl, mongoUrl }: SharedLogPlace,
  options: Pick<SharedLogOptions, 'copyOf' | 'exists'> = {},
): Promise<SharedLog> {
  if (mongoUrl !== undefined) {
    const client = await openClient(mongoUrl)
    return await orClosed(
      () => MongoLog.open(client.db(), { ...options, close: () => client.close() }),
      () => client.close(),
    )
  }
  if (knexUrl === undefined) throw new Error('no database is set')
  const pool = createPool({ uri: knexUrl, connectTimeout: CONNECT_WITHIN, connectionLimit: CONNECTIONS })
  pool.on('connection', (connection) => {
    connection.query(SETUP)
    const { stream } = connection as unknown as { stream: Socket }
    stream.setTimeout(IDLE, () => stream.destroy())
  })
  const promised = pool.promise()
  return await orClosed(
    () =>
      MysqlLog.open((sql, values) => promised.query(sql, values), {
        ...options,
        close: () => promised.end(),
      }),
    () => promised.end(),
  )
}

async function orClosed(open: () => Promise<SharedLog>, close: () => Promise<void>): Promise<SharedLog> {
  try {
    return await open()
  } catch (error) {
    await close()
    throw error
  }
}
