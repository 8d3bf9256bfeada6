import { randomBytes } from 'node:crypto'
import { type Db, MongoClient } from 'mongodb'
import { bodyFact } from '../../../backend/src/facts/log.js'
import { MongoLog } from '../../../backend/src/facts/mongo-log.js'
import { type SharedLog, START } from '../../../backend/src/facts/shared-log.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { describeWithMongo } from '../../support/storage/databases.js'

// What others do to the collections of a log, and what a connection string may say.

const MUCH = { limit: 1000, maxBytes: 1e9 }

async function insert(log: SharedLog, first: number, ...texts: string[]): Promise<boolean> {
  const rows = texts.map((text) => bodyFact(utf8(text)))
  return await log.insert({ first, id: randomBytes(8), at: 5, rows })
}

describeWithMongo('a log in MongoDB', (mongo) => {
  async function create(): Promise<{ db: Db; log: MongoLog }> {
    const db = mongo.db()
    const log = await MongoLog.open(db)
    await insert(log, 1, 'one', 'two')
    return { db, log }
  }

  test('ends where its batches do, whatever other documents are in the collection', async () => {
    const { db, log } = await create()
    for (const other of [{ text: 'x' }, { _id: 'x' as never }, { _id: null as never }])
      await db.collection('minetree_log').insertOne(other)
    expect(await log.last()).toBe(2)
    expect(await log.after(START, MUCH)).toHaveLength(2)
    expect(await insert(log, 3, 'three')).toBe(true)
    expect(await log.last()).toBe(3)
  })

  test.each([
    ['is at a place and is no batch', { $set: { rows: 'x' } }],
    ['has lost rows', { $pop: { rows: 1 } }],
    ['has lost its id', { $unset: { batch: 1 } }],
  ])('says that it is damaged where a document %s', async (_, change) => {
    const { db, log } = await create()
    await db.collection('minetree_log').updateOne({ _id: 1 as never }, change as object)
    await expect(log.after(START, MUCH)).rejects.toThrow('minetree_log: the document 1 is no batch')
  })

  test('is not copied into where its rows are left and its id is lost', async () => {
    const { db } = await create()
    await db.collection('minetree_log_meta').deleteMany({})
    await expect(MongoLog.open(db, { copyOf: 'x' })).rejects.toThrow('holds a log already')
  })

  test.each(['w=0', 'w=1&journal=false', 'readPreference=secondary', 'readConcernLevel=local'])(
    'is written and read as safely with %s in the connection string',
    async (parameter) => {
      const url = `${mongo.database().split('?')[0]}?${parameter}`
      const client = await new MongoClient(url, { monitorCommands: true }).connect()
      const sent: Record<string, unknown>[] = []
      client.on('commandStarted', ({ command }) => sent.push(command))
      const log = await MongoLog.open(client.db())
      expect([await insert(log, 1, 'one'), await insert(log, 1, 'other')]).toEqual([true, false])
      expect(await log.after(START, MUCH)).toHaveLength(1)
      await client.close()
      const writes = sent.filter((command) => 'insert' in command || 'delete' in command)
      expect(writes.length).toBeGreaterThan(1)
      for (const { writeConcern } of writes) expect(writeConcern).toMatchObject({ w: 'majority', j: true })
      const reads = sent.filter((command) => 'find' in command)
      for (const { readConcern, $readPreference = { mode: 'primary' } } of reads)
        expect([readConcern, $readPreference]).toMatchObject([{ level: 'majority' }, { mode: 'primary' }])
    },
  )

  test('names what a user lacks that may only read', async () => {
    const { db } = await create()
    // The server of these tests knows no users: this is how MongoDB refuses one.
    const refused = Object.assign(
      new Error('not authorized on test to execute command { delete: "minetree_log_meta" }'),
      {
        code: 13,
      },
    )
    const refusing = <Value extends object>(value: Value): Value =>
      new Proxy(value, {
        get(target, name) {
          if (name === 'collection')
            return (...args: unknown[]) => refusing(db.collection(...(args as [string])))
          if (/^(insert|update|delete|create)/.test(String(name))) return () => Promise.reject(refused)
          const found: unknown = Reflect.get(target, name)
          return typeof found === 'function' ? found.bind(target) : found
        },
      })
    const opened = MongoLog.open(refusing(db))
    await expect(opened).rejects.toMatchObject({ code: 'MISSING_GRANT' })
    await expect(opened).rejects.toThrow('may not delete: grant it the role readWrite')
  })
})
