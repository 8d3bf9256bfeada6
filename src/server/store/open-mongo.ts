import { MongoClient } from 'mongodb'
import { whileAvailable } from '../../../backend/src/storage/mongo/documents.js'
import { MongoGraphStore } from '../../../backend/src/storage/mongo/graph-store.js'
import { MongoHeldSubmissions } from '../../../backend/src/storage/mongo/held-submissions.js'
import { MongoHookOutbox } from '../../../backend/src/storage/mongo/hook-outbox.js'
import { MongoIndexMaintenance } from '../../../backend/src/storage/mongo/index-maintenance.js'
import type { OnReorg } from '../../../backend/src/storage/write/graph-store-base.js'
import { mongoOptions } from '../config/mongo-url.js'
import type { Stores } from './stores.js'

/**
 * How long it is looked for a server that answers, and how long a connection may take to be there, in milliseconds: who asks
 * is told to try again after that. Whatever the operator has in the URL goes before.
 */
const LIMITS = { serverSelectionTimeoutMS: 5000, connectTimeoutMS: 5000 }

/**
 * Connects to a MongoDB. A connection that is lost is made anew when it is next needed. Any number of processes may have it.
 *
 * @param options.url `mongodb://user:password@host:port/database`, with what options the driver knows.
 * @param options.isWatched As the store has it.
 * @throws StoreUnavailableError where no server answers, and what the driver throws where none lets it in.
 */
export async function openMongo({
  url,
  onReorg,
  isWatched,
}: {
  url: string
  onReorg: OnReorg
  isWatched: boolean
}): Promise<Stores> {
  const client = await openClient(url)
  const db = client.db()
  const graph = new MongoGraphStore({ db, onReorg, isWatched })
  const notes = new MongoHookOutbox(db, graph.writer)
  return {
    graph,
    notes,
    held: new MongoHeldSubmissions({ db, writer: graph.writer }),
    maintenance: new MongoIndexMaintenance({ db, writer: graph.writer }),
    failedHooksWaiting: () => notes.waiting(),
    isShared: true,
    close: () => client.close(),
  }
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
