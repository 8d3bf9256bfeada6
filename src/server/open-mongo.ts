import { MongoClient } from 'mongodb'
import { MongoGraphStore } from '../../backend/src/storage/mongo/mongo-graph-store.js'
import { MongoHeldSubmissions } from '../../backend/src/storage/mongo/mongo-held-submissions.js'
import { MongoHookNotes } from '../../backend/src/storage/mongo/mongo-hook-notes.js'
import { MongoUpkeep } from '../../backend/src/storage/mongo/mongo-upkeep.js'
import { whileAvailable } from '../../backend/src/storage/mongo/unavailable.js'
import { mongoOptions } from './mongo-url.js'
import type { OnTurn, Stores } from './stores.js'

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
  onTurn,
  isWatched,
}: {
  url: string
  onTurn: OnTurn
  isWatched: boolean
}): Promise<Stores> {
  const client = await openClient(url)
  const db = client.db()
  const graph = new MongoGraphStore({ db, onTurn, isWatched })
  const notes = new MongoHookNotes(db, graph.writer)
  return {
    graph,
    notes,
    held: new MongoHeldSubmissions({ db, writer: graph.writer }),
    upkeep: new MongoUpkeep({ db, writer: graph.writer }),
    notesWaiting: () => notes.waiting(),
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
