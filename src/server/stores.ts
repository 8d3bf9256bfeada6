import type { HeldSubmissions } from '../../backend/src/graph/held-submissions.js'
import type { HookNotes } from '../../backend/src/graph/hook-note.js'
import type { HostStore } from '../../backend/src/graph/host-store.js'
import type { IndexComparison, IndexRebuild } from '../../backend/src/graph/upkeep.js'
import { SqlGraphStore } from '../../backend/src/storage/sql/sql-graph-store.js'
import { SqlHeldSubmissions } from '../../backend/src/storage/sql/sql-held-submissions.js'
import { SqlHookNotes, waitingHookNotes } from '../../backend/src/storage/sql/sql-hook-notes.js'
import { SqlUpkeep } from '../../backend/src/storage/sql/sql-upkeep.js'
import type { Config } from './config.js'
import { connectDatabase, type Database, openDatabase } from './open-database.js'
import type { openMongo as OpenMongo } from './open-mongo.js'

/** All that a host keeps in a database that it has connections to, on whatever engine. */
export interface Stores {
  graph: HostStore
  notes: HookNotes
  upkeep: IndexComparison & IndexRebuild
  held: HeldSubmissions
  /** How many notes wait, of all services. */
  notesWaiting(): Promise<number>
  /** Whether other processes may write to it, too. */
  isShared: boolean
  close(): Promise<void>
}

/** @param transactions How many became silent or count again, as a conflict was decided anew. */
export type OnTurn = (transactions: number) => void

/**
 * Connects to the database that the settings name, for the one process that has it, or one of several.
 *
 * @throws as {@link openDatabase} does, and what the driver of MongoDB throws where that cannot be reached.
 */
export async function openStores(config: Config, onTurn: OnTurn): Promise<Stores> {
  const { mongoUrl } = config
  if (mongoUrl !== undefined) return await mongoStores({ url: mongoUrl, onTurn, isWatched: true })
  return sqlStores(await openDatabase(config), onTurn)
}

/** Connections of its own to it, for another thread of a process that has it open. */
export async function connectStores(config: Config, onTurn: OnTurn): Promise<Stores> {
  const { mongoUrl } = config
  if (mongoUrl !== undefined) return await mongoStores({ url: mongoUrl, onTurn, isWatched: false })
  return sqlStores(await connectDatabase(config), onTurn)
}

async function mongoStores(options: Parameters<typeof OpenMongo>[0]): Promise<Stores> {
  // Its driver takes a while to load, and most hosts need none.
  const { openMongo } = await import('./open-mongo.js')
  return await openMongo(options)
}

function sqlStores(database: Database, onTurn: OnTurn): Stores {
  const { writer, reader, isShared, close } = database
  return {
    graph: new SqlGraphStore({ writer, reader, onTurn }),
    notes: new SqlHookNotes(writer),
    held: new SqlHeldSubmissions({ writer, reader }),
    upkeep: new SqlUpkeep({ writer, reader }),
    notesWaiting: () => waitingHookNotes(reader),
    isShared,
    close,
  }
}
