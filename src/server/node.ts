import type { Logger } from 'pino'
import { StoreUnavailableError } from '../../backend/src/graph/store-unavailable-error.js'
import { TOPICS } from '../../backend/src/protocol/profile.js'
import { type Config, ConfigError } from './config/config.js'
import { StartError } from './config/start-error.js'
import { CachingStore } from './store/caching-store.js'
import { IndexMaintenance } from './store/index-maintenance.js'
import { placeOf } from './store/open-database.js'
import { type Deploy, pinGenesis } from './store/pinned-genesis.js'
import { openStores, type Stores } from './store/stores.js'
import { BacklogWorker } from './submission/backlog-worker.js'
import { createOverlay, type Overlay } from './submission/overlay.js'

/** A node without its HTTP side: the store and the overlay over it. */
export interface Node {
  /** The settings, with the tree that the store holds. */
  config: Config
  graph: CachingStore
  overlay: Overlay
  /** Compares what is answered with what was admitted, when it is told to start. */
  maintenance: IndexMaintenance
  /** Goes on with what writes have left to be done. */
  backlog: BacklogWorker
  /** How many hooks failed, are noted, and wait to be repeated. */
  failedHooksWaiting(): Promise<number>
  close(): Promise<void>
}

/**
 * Opens the store that the settings name, brings its schema up to date, and puts the overlay on it.
 *
 * @throws StartError where the store cannot be opened; ConfigError where it holds another tree than they name.
 */
export async function openNode({
  config,
  logger,
  deploy,
}: {
  config: Config
  logger: Logger
  /** Makes a tree for an empty store, where the settings name none. */
  deploy?: Deploy
}): Promise<Node> {
  let stores: Stores | undefined
  let graph: CachingStore | undefined
  let overlay: Overlay | undefined
  let maintenance: IndexMaintenance | undefined
  let backlog: BacklogWorker | undefined
  const close = async (): Promise<void> => {
    await backlog?.close()
    await maintenance?.close()
    await overlay?.close()
    await graph?.close()
    await stores?.close()
  }
  try {
    stores = await openStores(config, (transactions) => {
      logger.warn({ transactions }, 'a conflict was resolved differently: a branch was reorganised')
      overlay?.tell({ kind: 'turned', transactions })
    })
    const { notes, held, failedHooksWaiting, isShared } = stores
    const onWrite = async (): Promise<void> => maintenance?.notice()
    graph = new CachingStore({ store: stores.graph, isShared, onWrite, logger })
    await graph.open()
    const followed = await pinGenesis({ graph, config, ...(deploy && { deploy }) })
    overlay = createOverlay({ config: followed.config, graph, notes, held, logger })
    if (followed.deployed !== undefined) {
      await overlay.engine.submit({ beef: followed.deployed.beef, topics: [TOPICS.names] })
    }
    const { engine } = overlay
    const index = new IndexMaintenance({
      store: stores.maintenance,
      graph,
      exclusively: (work) => engine.completeIndex(work).finally(engine.onWritten),
      logger,
    })
    maintenance = index
    await index.open()
    engine.assertIndexComplete = () => index.assertIndexComplete()
    backlog = new BacklogWorker({
      graph,
      // Whatever makes the index whole does all of it by itself.
      exclusively: (work) => engine.completeIndex(async () => !index.isRebuilding && (await work())),
      isWriting: () => engine.isWriting,
      logger,
    })
    engine.onWritten = () => backlog?.notice()
    backlog.notice()
    return { config: followed.config, graph, overlay, maintenance, backlog, failedHooksWaiting, close }
  } catch (error) {
    await close()
    if (error instanceof ConfigError) throw error
    const reason = reasonOf(error instanceof StoreUnavailableError ? error.cause : error)
    throw new StartError(`cannot open the store in ${placeOf(config)}: ${reason}`, { cause: error })
  }
}

/** What went wrong, in one line; where there were several addresses to try, Node says nothing but a code. */
function reasonOf(error: unknown): string {
  const { message, code } = (error ?? {}) as { message?: unknown; code?: unknown }
  const [line] = String(message || code || error).split('\n')
  return line ?? ''
}
