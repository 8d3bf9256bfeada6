import { MongoClient } from 'mongodb'
import { whileAvailable } from '../../../backend/src/storage/mongo/documents.js'
import { MongoGraphStore } from '../../../backend/src/storage/mongo/graph-store.js'
import { MongoIndexMaintenance } from '../../../backend/src/storage/mongo/index-maintenance.js'
import { StoredAncestorQueue } from '../../../backend/src/storage/write/ancestor-queue.js'
import type { OnReorg } from '../../../backend/src/storage/write/graph-store-base.js'
import { StoredSubmissions } from '../../../backend/src/storage/write/held-submissions.js'
import { mongoOptions } from '../config/mongo-url.js'
import { DatabaseStores } from './database-stores.js'

/** Timeouts for selecting a server and for connecting, in milliseconds. Options in the URL take precedence. */
const LIMITS = { serverSelectionTimeoutMS: 5000, connectTimeoutMS: 5000 }

/**
 * Connects to a MongoDB. The driver reconnects when necessary. Any number of processes may share it.
 *
 * @param options.url `mongodb://user:password@host:port/database`, with any options of the driver.
 * @param options.isWatched As the store has it.
 * @throws StoreUnavailableError if no server answers; what the driver throws if none lets it in.
 */
export async function openMongo(options: {
  url: string
  onReorg: OnReorg
  isWatched: boolean
}): Promise<DatabaseStores> {
  const { url, onReorg, isWatched } = options
  const client = await openClient(url)
  const db = client.db()
  const graph = new MongoGraphStore({ db, onReorg, isWatched })
  return new DatabaseStores({
    graph,
    held: new StoredSubmissions(graph.database),
    ancestors: new StoredAncestorQueue(graph.database),
    maintenance: new MongoIndexMaintenance({ db, writer: graph.writer }),
    close: () => client.close(),
  })
}

/** A client that is connected. @throws as {@link openMongo}. */
export async function openClient(url: string): Promise<MongoClient> {
  const set = mongoOptions(url)
  const limits = Object.entries(LIMITS).filter(([name]) => !set.has(name.toLowerCase()))
  const client = new MongoClient(url, { appName: 'minetree', ...Object.fromEntries(limits) })
  try {
    await whileAvailable(() => client.connect())
  } catch (error) {
    await client.close()
    throw error
  }
  return client
}
