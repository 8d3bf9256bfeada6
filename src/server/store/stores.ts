import type { MessagePort } from 'node:worker_threads'
import { type Logger, pino } from 'pino'
import { SqlGraphStore } from '../../../backend/src/storage/sql/graph-store.js'
import { SqlIndexMaintenance } from '../../../backend/src/storage/sql/index-maintenance.js'
import { StoredAncestorQueue } from '../../../backend/src/storage/write/ancestor-queue.js'
import type { OnReorg } from '../../../backend/src/storage/write/graph-store-base.js'
import { StoredSubmissions } from '../../../backend/src/storage/write/held-submissions.js'
import type { Config } from '../config/config.js'
import { connectSqlite, openDatabase, openSqlite } from './open-database.js'
import type { FactStores } from './open-facts.js'
import type { Stores } from './open-mongo.js'

export type { FactStores, Stores }

/**
 * Connects to the database in the settings.
 *
 * @param options.isSecond Whether another thread of this process has it open already.
 * @throws as {@link openDatabase}; StoreUnavailableError and what the driver throws if MongoDB cannot be reached.
 */
export async function openStores(
  config: Config,
  {
    onReorg,
    isSecond = false,
    logger = pino({ level: 'silent' }),
    writerThread,
    writerPort,
  }: {
    onReorg: OnReorg
    isSecond?: boolean
    logger?: Logger
    /** Of a store of facts: see `FactStoreOptions`. */
    writerThread?: URL | undefined
    writerPort?: MessagePort | undefined
  },
): Promise<Stores | FactStores> {
  const { mongoUrl, storage } = config
  if (mongoUrl !== undefined) {
    // Loaded lazily: the driver takes a while, and most hosts do not use it.
    const { openMongo } = await import('./open-mongo.js')
    return await openMongo({ url: mongoUrl, onReorg, isWatched: !isSecond })
  }
  if (storage === 'facts') {
    const { openFacts } = await import('./open-facts.js')
    return await openFacts(config, { onReorg, logger, writerThread, writerPort })
  }
  const database = await openDatabase(config, isSecond ? connectSqlite : openSqlite)
  const { writer, reader, isShared, close } = database
  const graph = new SqlGraphStore({ writer, reader, onReorg })
  return {
    graph,
    held: new StoredSubmissions(graph.database),
    ancestors: new StoredAncestorQueue(graph.database),
    maintenance: new SqlIndexMaintenance({ writer, reader }),
    isShared,
    close,
  }
}
