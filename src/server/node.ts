import type { Logger } from 'pino'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import type { SqlGraphStore } from '../../backend/src/storage/sql/sql-graph-store.js'
import { type Config, ConfigError } from './config.js'
import { type Database, openSqlite } from './open-database.js'
import { createOverlay, type Overlay } from './overlay.js'
import { RememberingStore } from './remembering-store.js'

/** Why the service cannot start, in one line. */
export class StartError extends Error {
  override readonly name = 'StartError'
}

/** A node without its HTTP side: the store and the overlay over it. */
export interface Node {
  graph: RememberingStore
  overlay: Overlay
  close(): Promise<void>
}

/**
 * Opens the store that the settings name, brings its schema up to date, and puts the overlay on it.
 *
 * @throws StartError where the store cannot be opened; ConfigError where it holds the tree of another genesis.
 */
export async function openNode({ config, logger }: { config: Config; logger: Logger }): Promise<Node> {
  let database: Database | undefined
  try {
    database = await openSqlite(config.dataDir)
    const graph = new RememberingStore(database)
    await graph.open()
    await pinGenesis(graph, config)
    return { graph, overlay: createOverlay({ config, graph, logger }), close: database.close }
  } catch (error) {
    await database?.close()
    if (error instanceof ConfigError) throw error
    const reason = error instanceof Error ? error.message : String(error)
    throw new StartError(`cannot open the store in ${config.dataDir}: ${reason}`, { cause: error })
  }
}

/** A store holds one tree: the nodes of two would answer for each other. */
async function pinGenesis(graph: SqlGraphStore, { dataDir, deployment }: Config): Promise<void> {
  const pinned = await graph.setting('genesis')
  const genesis = deployment && formatOutpoint(deployment.genesis)
  if (pinned !== undefined && pinned !== genesis) {
    throw new ConfigError(
      `GENESIS: the store in ${dataDir} holds the tree of ${pinned}, not of ${genesis ?? 'none'}`,
    )
  }
  if (pinned === undefined && genesis !== undefined) await graph.setSetting('genesis', genesis)
}
