import type { MessagePort } from 'node:worker_threads'
import { type Logger, pino } from 'pino'
import type { OnReorg } from '../../../backend/src/storage/write/graph-store-base.js'
import type { Config } from '../config/config.js'
import type { Stores } from './stores.js'

/**
 * Opens the store in the settings.
 *
 * @param options.isSecond Whether another thread of this process has it open already.
 * @throws what the file system, SQLite or a driver throws; StoreUnavailableError if MongoDB cannot be reached.
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
): Promise<Stores> {
  const { knexUrl, mongoUrl, sharesFacts } = config
  // Loaded lazily: drivers take a while, and most hosts do not use them.
  if (mongoUrl !== undefined && !sharesFacts) {
    const { openMongo } = await import('./open-mongo.js')
    return await openMongo({ url: mongoUrl, onReorg, isWatched: !isSecond })
  }
  if (knexUrl !== undefined && !sharesFacts) {
    const { openMysqlStores } = await import('./open-mysql.js')
    return openMysqlStores({ url: knexUrl, onReorg })
  }
  const { openFacts } = await import('./open-facts.js')
  return await openFacts(config, { onReorg, logger, writerThread, writerPort })
}
