import { MongoClient } from 'mongodb'
import { MongoLog } from '../../../backend/src/facts/mongo-log.js'
import { MysqlLog } from '../../../backend/src/facts/mysql-log.js'
import { mysqlPool } from '../../../backend/src/facts/mysql-pool.js'
import type { SharedLog, SharedLogOptions } from '../../../backend/src/facts/shared-log.js'
import type { Config } from '../config/config.js'
import { mongoOptions } from '../config/mongo-url.js'

export type SharedLogPlace = Pick<Config, 'knexUrl' | 'mongoUrl'>

/** Connections of a gateway: it writes one batch at a time, and reads chunks of bodies in parallel. */
const CONNECTIONS = 4
/** How long finding a MongoDB server, and connecting to it, may take, in milliseconds. */
const CONNECT_WITHIN = 5000

/**
 * Opens the log in a database, or makes one.
 *
 * @throws errors of the driver; Error if the database holds a store of an earlier kind; CopyError (`identify`).
 */
export async function openSharedLog(
  { knexUrl, mongoUrl }: SharedLogPlace,
  options: Omit<SharedLogOptions, 'close'> = {},
): Promise<SharedLog> {
  if (mongoUrl !== undefined) {
    const client = clientOf(mongoUrl)
    return await orClosed(
      async () => {
        const db = client.db()
        if ((await db.collection(OLD_TABLE).findOne()) !== null) throw tablesError()
        return await MongoLog.open(db, { ...options, close: () => client.close() })
      },
      () => client.close(),
    )
  }
  if (knexUrl === undefined) throw new Error('no database is set')
  const { query, close } = mysqlPool({ uri: knexUrl, connectionLimit: CONNECTIONS })
  return await orClosed(async () => {
    const [tables] = (await query('show tables like ?', [OLD_TABLE.replace('_', '\\_')])) as [unknown[]]
    if (tables.length > 0) throw tablesError()
    return await MysqlLog.open(query, { ...options, close })
  }, close)
}

/** A table, or collection, of the stores in databases from before November 2026; it always had a row. */
const OLD_TABLE = 'graph_settings'

function tablesError(): Error {
  return new Error(
    'it holds tables of an earlier kind of store, which are not read: name another database, and import or follow again',
  )
}

/** Options in the URL take precedence. */
function clientOf(url: string): MongoClient {
  const set = mongoOptions(url)
  const limits = { serverSelectionTimeoutMS: CONNECT_WITHIN, connectTimeoutMS: CONNECT_WITHIN }
  const unset = Object.entries(limits).filter(([name]) => !set.has(name.toLowerCase()))
  return new MongoClient(url, { appName: 'minetree', ...Object.fromEntries(unset) })
}

async function orClosed(open: () => Promise<SharedLog>, close: () => Promise<void>): Promise<SharedLog> {
  try {
    return await open()
  } catch (error) {
    await close()
    throw error
  }
}
