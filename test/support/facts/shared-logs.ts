import { randomBytes } from 'node:crypto'
import { type Db, MongoClient } from 'mongodb'
import { createPool, type Pool } from 'mysql2/promise'
import { MongoLog } from '../../../backend/src/facts/mongo-log.js'
import { MysqlLog } from '../../../backend/src/facts/mysql-log.js'
import type { LogRow, SharedLog, SharedLogOptions } from '../../../backend/src/facts/shared-log.js'
import { describeWithMariadb, describeWithMongo } from '../storage/databases.js'
import { startTcpProxy, type TcpProxy } from '../storage/tcp-proxy.js'
import { MemoryLog } from './memory-log.js'

/** A new log, and what tests do behind its back. */
export interface LogUnderTest {
  /** Another gateway's connections to it. */
  open(options?: SharedLogOptions): Promise<SharedLog>
  /** Deletes the rows after a place, as one does who restores an earlier backup. */
  restore(seq: number): Promise<void>
  /** Changes a byte of each chunk, or deletes them. */
  damageChunks(how: 'changed' | 'missing'): Promise<void>
  /** How many chunks there are; undefined where bodies are in one piece. */
  chunks?(): Promise<number>
  /** Leaves a chunk of a batch that was to begin at a place, as a gateway does that ends before it inserts the batch. */
  leaveChunk?(first: number): Promise<void>
}

/** How tests make logs. */
export interface SharedLogs {
  create(): Promise<LogUnderTest>
  /** A log that is reached through a proxy; undefined if there is no connection. */
  throughProxy?: () => Promise<{ log: LogUnderTest; proxy: TcpProxy; open: LogUnderTest['open'] }>
}

/** Runs tests on each kind of a shared log: in memory, and where the machine has their servers, on MariaDB and MongoDB. */
export function onEachSharedLog(what: string, tests: (logs: SharedLogs) => void): void {
  describe(`${what} in memory`, () => tests({ create: async () => memoryLog() }))
  if (process.env.TEST_TIER === 'quick') return
  describeWithMariadb(`${what} in MariaDB`, (mariadb) => {
    const closing = closedAfterwards()
    const create = async (): Promise<LogUnderTest & { url: string }> => {
      const url = await mariadb.database()
      const pool = createPool({ uri: url })
      closing.push(() => pool.end())
      return { url, ...mysqlLog(pool, (options) => openMysqlLog(url, options)) }
    }
    tests({
      create,
      async throughProxy() {
        const proxy = await startTcpProxy(mariadb.port())
        const log = await create()
        const url = new URL(log.url)
        url.port = String(proxy.port)
        return { log, proxy, open: (options) => openMysqlLog(url.href, options) }
      },
    })
  })
  describeWithMongo(`${what} in MongoDB`, (mongo) => {
    const closing = closedAfterwards()
    const create = async (): Promise<LogUnderTest & { url: string }> => {
      const url = mongo.database()
      const client = await new MongoClient(url).connect()
      closing.push(() => client.close())
      return { url, ...mongoLog(client.db(), (options) => openMongoLog(url, options)) }
    }
    tests({
      create,
      async throughProxy() {
        const proxy = await startTcpProxy(mongo.port())
        const log = await create()
        const url = log.url.replace(`:${mongo.port()}/`, `:${proxy.port}/`)
        return { log, proxy, open: (options) => openMongoLog(url, options) }
      },
    })
  })
}

function closedAfterwards(): (() => Promise<void>)[] {
  const closing: (() => Promise<void>)[] = []
  afterAll(async () => {
    for (const close of closing) await close()
  })
  return closing
}

function memoryLog(): LogUnderTest {
  const shared = { id: randomBytes(16).toString('hex'), rows: [] as LogRow[] }
  return {
    open: async () => new MemoryLog(shared),
    async restore(seq) {
      shared.rows.length = seq
    },
    async damageChunks() {},
  }
}

async function openMysqlLog(url: string, options: SharedLogOptions = {}): Promise<SharedLog> {
  const pool = createPool({ uri: url, connectionLimit: 4 })
  return await MysqlLog.open((sql, values) => pool.query(sql, values), {
    ...options,
    close: () => pool.end(),
  })
}

function mysqlLog(pool: Pool, open: LogUnderTest['open']): LogUnderTest {
  return {
    open,
    async restore(seq) {
      await pool.query('delete from minetree_log where seq > ?', [seq])
    },
    async damageChunks(how) {
      await pool.query(
        how === 'missing'
          ? 'delete from minetree_chunk where position = 1'
          : "update minetree_chunk set bytes = concat('x', bytes) where position = 1",
      )
    },
    async chunks() {
      const [rows] = await pool.query('select count(*) as count from minetree_chunk')
      return Number((rows as { count: number }[])[0]?.count)
    },
    async leaveChunk(first) {
      const [owner, checksum] = [randomBytes(32), randomBytes(32)]
      await pool.query('insert into minetree_chunk values (?, 0, ?, ?, ?)', [owner, owner, checksum, first])
    },
  }
}

async function openMongoLog(url: string, options: SharedLogOptions = {}): Promise<SharedLog> {
  const client = await new MongoClient(url).connect()
  return await MongoLog.open(client.db(), { ...options, close: () => client.close() })
}

function mongoLog(db: Db, open: LogUnderTest['open']): LogUnderTest {
  const chunks = db.collection<{ _id: string; bytes: Buffer; checksum?: Buffer; first?: number }>(
    'minetree_chunk',
  )
  return {
    open,
    async restore(seq) {
      await db.collection<{ _id: number }>('minetree_log').deleteMany({ _id: { $gt: seq } })
    },
    async damageChunks(how) {
      const second = { _id: / 1$/ }
      if (how === 'missing') await chunks.deleteMany(second)
      else await chunks.updateMany(second, { $set: { bytes: Buffer.from('damaged') } })
    },
    chunks: async () => await chunks.countDocuments(),
    async leaveChunk(first) {
      const bytes = randomBytes(32)
      await chunks.insertOne({ _id: `${bytes.toString('hex')} 0`, bytes, checksum: bytes, first })
    },
  }
}
