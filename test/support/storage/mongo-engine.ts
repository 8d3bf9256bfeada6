import { MongoClient } from 'mongodb'
import { chunksOf } from '../../../backend/src/storage/mongo/collections.js'
import { MongoGraphStore } from '../../../backend/src/storage/mongo/graph-store.js'
import { MongoIndexMaintenance } from '../../../backend/src/storage/mongo/index-maintenance.js'
import { hashColumn, outpointColumns } from '../../../backend/src/storage/rows/columns.js'
import { StoredHookOutbox } from '../../../backend/src/storage/write/hook-outbox.js'
import { MISSING_FOR_MONGO, mongoUrl } from '../services/mongo.js'
import { freshDatabaseName, portOfShared } from '../services/shared.js'
import { rebuild } from './arrival.js'
import type { Engine } from './engine.js'
import { asText, rawDocuments, watchedDb } from './mongo-documents.js'
import { type Asked, keepAsked, withoutIndex } from './mongo-queries.js'

/** That of the stores, and the one of what tests do behind their backs. */
let client: MongoClient | undefined
let other: MongoClient | undefined
let asked: () => Asked[] = () => []

/** Each store has a database of its own on the shared server. */
export const mongo: Engine = {
  name: 'MongoDB',
  missing: MISSING_FOR_MONGO,
  share: 0.05,
  async start() {
    const url = mongoUrl(await portOfShared('mongo'), '')
    client = await new MongoClient(url, { monitorCommands: true }).connect()
    other = await new MongoClient(url).connect()
    asked = keepAsked(client)
  },
  async stop() {
    const whole = await readWhole()
    await client?.close()
    await other?.close()
    if (whole.length > 0) throw new Error(`no index leads to ${JSON.stringify(whole)}`)
  },
  async open() {
    if (client === undefined || other === undefined) throw new Error('MongoDB was not started')
    const name = freshDatabaseName()
    const own = client.db(name)
    const db = other.db(name)
    let reads = 0
    let broken: string | undefined
    const watched = watchedDb(own, ({ collection, method, args }) => {
      if (method === 'find') reads++
      // Where all that is new goes first.
      if (collection === 'graph_journal' && method === 'insertOne' && putsInto(args[0], broken))
        throw new Error('the disk is full')
    })
    const store = new MongoGraphStore({ db: watched })
    await store.open()
    const maintenance = new MongoIndexMaintenance({ db: own, writer: store.writer })
    return {
      store,
      notes: new StoredHookOutbox(store.database),
      maintenance,
      rebuild: () => rebuild({ store, maintenance }),
      another: () => new MongoGraphStore({ db }),
      reads: () => reads,
      rows: async () => asText(await rawDocuments(db), ['arrival']),
      async breakInserts(table) {
        broken = table
        return async () => {
          broken = undefined
        }
      },
      async removeOutput(outpoint) {
        await db.collection('graph_outputs').deleteOne(outpointColumns(outpoint))
      },
      async removeBytes(txid) {
        await db.collection<{ _id: Buffer }>('graph_pieces').deleteMany(chunksOf(hashColumn(txid)))
      },
      close: async () => {
        await db.dropDatabase()
      },
    }
  },
}

/** Collections of which all is asked for: it is kept in memory, or thrown away. */
const WHOLE = ['graph_blocked', 'graph_journal']

/** Whatever the stores of a test file asked that no index leads to. */
async function readWhole(): Promise<Asked[]> {
  if (client === undefined) return []
  const db = client.db(freshDatabaseName())
  const all = asked()
  await new MongoGraphStore({ db }).open()
  const found = await withoutIndex(db, all)
  await db.dropDatabase()
  return found.filter(
    ({ collection, filter }) => !WHOLE.includes(collection) || Object.keys(filter).length > 0,
  )
}

function putsInto(part: unknown, collection: string | undefined): boolean {
  const { changes } = part as { changes: { collection: string }[] }
  return changes.some((change) => change.collection === collection)
}
