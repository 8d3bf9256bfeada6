import { SqlGraphStore } from '../../../backend/src/storage/sql/graph-store.js'
import { SqlIndexMaintenance } from '../../../backend/src/storage/sql/index-maintenance.js'
import type { OnReorg } from '../../../backend/src/storage/write/graph-store-base.js'
import { StoredSubmissions } from '../../../backend/src/storage/write/held-submissions.js'
import { StoredHookOutbox } from '../../../backend/src/storage/write/hook-outbox.js'
import type { Config } from '../config/config.js'
import { connectDatabase, openDatabase } from './open-database.js'
import type { openMongo as OpenMongo, Stores } from './open-mongo.js'
import type { Database } from './open-mysql.js'

export type { Stores } from './open-mongo.js'

/**
 * Connects to the database in the settings, as the process that owns it, or one of several.
 *
 * @throws as {@link openDatabase}; StoreUnavailableError and what the driver throws if MongoDB cannot be reached.
 */
export async function openStores(config: Config, onReorg: OnReorg): Promise<Stores> {
  const { mongoUrl } = config
  if (mongoUrl !== undefined) return await mongoStores({ url: mongoUrl, onReorg, isWatched: true })
  return sqlStores(await openDatabase(config), onReorg)
}

/** More connections, for another thread of a process that has it open. */
export async function connectStores(config: Config, onReorg: OnReorg): Promise<Stores> {
  const { mongoUrl } = config
  if (mongoUrl !== undefined) return await mongoStores({ url: mongoUrl, onReorg, isWatched: false })
  return sqlStores(await connectDatabase(config), onReorg)
}

async function mongoStores(options: Parameters<typeof OpenMongo>[0]): Promise<Stores> {
  // Loaded lazily: the driver takes a while, and most hosts do not use it.
  const { openMongo } = await import('./open-mongo.js')
  return await openMongo(options)
}

function sqlStores(database: Database, onReorg: OnReorg): Stores {
  const { writer, reader, isShared, close } = database
  const graph = new SqlGraphStore({ writer, reader, onReorg })
  const outbox = new StoredHookOutbox(graph.database)
  return {
    graph,
    outbox,
    held: new StoredSubmissions(graph.database),
    maintenance: new SqlIndexMaintenance({ writer, reader }),
    failedHooksWaiting: () => outbox.waiting(),
    isShared,
    close,
  }
}
