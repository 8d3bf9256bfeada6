import type { HeldSubmissions } from '../../../backend/src/graph/held-submissions.js'
import type { HookOutbox } from '../../../backend/src/graph/hook-outbox.js'
import type { HostStore } from '../../../backend/src/graph/host-store.js'
import type { IndexComparison, IndexRebuild } from '../../../backend/src/graph/index-maintenance.js'
import { SqlGraphStore } from '../../../backend/src/storage/sql/graph-store.js'
import { SqlHeldSubmissions } from '../../../backend/src/storage/sql/held-submissions.js'
import { SqlHookOutbox, waitingFailedHooks } from '../../../backend/src/storage/sql/hook-outbox.js'
import { SqlIndexMaintenance } from '../../../backend/src/storage/sql/index-maintenance.js'
import type { OnReorg } from '../../../backend/src/storage/write/graph-store-base.js'
import type { Config } from '../config/config.js'
import { connectDatabase, type Database, openDatabase } from './open-database.js'
import type { openMongo as OpenMongo } from './open-mongo.js'

/** All that a host keeps in a database that it has connections to, on whatever engine. */
export interface Stores {
  graph: HostStore
  notes: HookOutbox
  maintenance: IndexComparison & IndexRebuild
  held: HeldSubmissions
  /** How many notes wait, of all services. */
  failedHooksWaiting(): Promise<number>
  /** Whether other processes may write to it, too. */
  isShared: boolean
  close(): Promise<void>
}

/**
 * Connects to the database that the settings name, for the one process that has it, or one of several.
 *
 * @throws as {@link openDatabase} does, and what the driver of MongoDB throws where that cannot be reached.
 */
export async function openStores(config: Config, onReorg: OnReorg): Promise<Stores> {
  const { mongoUrl } = config
  if (mongoUrl !== undefined) return await mongoStores({ url: mongoUrl, onReorg, isWatched: true })
  return sqlStores(await openDatabase(config), onReorg)
}

/** Connections of its own to it, for another thread of a process that has it open. */
export async function connectStores(config: Config, onReorg: OnReorg): Promise<Stores> {
  const { mongoUrl } = config
  if (mongoUrl !== undefined) return await mongoStores({ url: mongoUrl, onReorg, isWatched: false })
  return sqlStores(await connectDatabase(config), onReorg)
}

async function mongoStores(options: Parameters<typeof OpenMongo>[0]): Promise<Stores> {
  // Its driver takes a while to load, and most hosts need none.
  const { openMongo } = await import('./open-mongo.js')
  return await openMongo(options)
}

function sqlStores(database: Database, onReorg: OnReorg): Stores {
  const { writer, reader, isShared, close } = database
  return {
    graph: new SqlGraphStore({ writer, reader, onReorg }),
    notes: new SqlHookOutbox(writer),
    held: new SqlHeldSubmissions({ writer, reader }),
    maintenance: new SqlIndexMaintenance({ writer, reader }),
    failedHooksWaiting: () => waitingFailedHooks(reader),
    isShared,
    close,
  }
}
