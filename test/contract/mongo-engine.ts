import { MongoClient } from 'mongodb'
import { outpointColumns } from '../../backend/src/storage/columns.js'
import { MongoGraphStore } from '../../backend/src/storage/mongo/mongo-graph-store.js'
import { MongoHookNotes } from '../../backend/src/storage/mongo/mongo-hook-notes.js'
import { MISSING_FOR_MONGO, type Mongo, startMongo } from '../services/mongo.js'
import { asText, rawDocuments } from '../support/graph-documents.js'
import { watchedDb } from '../support/watched-db.js'
import type { Engine } from './engine.js'

let server: Mongo | undefined
let client: MongoClient | undefined
let databases = 0

/** Each test file has a server of its own, and each store a database in it. */
export const mongo: Engine = {
  name: 'MongoDB',
  missing: MISSING_FOR_MONGO,
  share: 0.2,
  async start() {
    server = await startMongo()
    client = await new MongoClient(server.url('')).connect()
  },
  async stop() {
    await client?.close()
    await server?.stop()
  },
  async open() {
    if (client === undefined) throw new Error('MongoDB was not started')
    const db = client.db(`store_${databases++}`)
    let reads = 0
    let broken: string | undefined
    const watched = watchedDb(db, ({ collection, method, args }) => {
      if (method === 'find') reads++
      // Where all that is new goes first.
      if (collection === 'graph_journal' && method === 'insertOne' && putsInto(args[0], broken))
        throw new Error('the disk is full')
    })
    const store = new MongoGraphStore({ db: watched })
    await store.open()
    return {
      store,
      notes: new MongoHookNotes(db, store.writer),
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
      close: async () => {
        await db.dropDatabase()
      },
    }
  },
}

function putsInto(part: unknown, collection: string | undefined): boolean {
  const { changes } = part as { changes: { collection: string }[] }
  return changes.some((change) => change.collection === collection)
}
