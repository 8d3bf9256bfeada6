import type { Logger } from 'pino'
import type { AncestorQueue } from '../../backend/src/graph/ancestor-queue.js'
import { StoreUnavailableError } from '../../backend/src/graph/errors.js'
import { TOPICS } from '../../backend/src/protocol/profile.js'
import type { Config } from './config/config.js'
import { ConfigError, reasonOf, StartError } from './config/errors.js'
import { CachingStore } from './store/caching-store.js'
import { IndexMaintenance } from './store/index-maintenance.js'
import { placeOf } from './store/open-database.js'
import { type Deploy, pinGenesis } from './store/pinned-genesis.js'
import { openStores, type Stores } from './store/stores.js'
import { BacklogWorker } from './submission/backlog-worker.js'
import { createOverlay, type Overlay } from './submission/overlay.js'

/** A node without its HTTP side: the store, and the overlay over it. */
export interface Node {
  /** The settings, with the tree that the store holds. */
  config: Config
  graph: CachingStore
  overlay: Overlay
  /** Compares the index with the admitted set, once started. */
  maintenance: IndexMaintenance
  /** Works off what writes leave in the backlog. */
  backlog: BacklogWorker
  /** Ordinals with missing ancestors. */
  ancestors: AncestorQueue
  /** Whether other processes may write to the database. */
  isShared: boolean
  /** How many failed hooks wait in the outbox. */
  failedHooksWaiting(): Promise<number>
  close(): Promise<void>
}

/**
 * Opens the store in the settings, brings its schema up to date, and puts the overlay on it.
 *
 * @throws StartError if the store cannot be opened; ConfigError if it holds another tree than the settings name.
 */
export async function openNode({
  config: settings,
  logger,
  deploy,
}: {
  config: Config
  logger: Logger
  /** Makes a tree for an empty store if the settings name none. */
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
    stores = await openStores(settings, {
      onReorg(transactions) {
        logger.warn({ transactions }, 'a conflict was resolved differently: a branch was reorganised')
        overlay?.emit({ kind: 'reorganised', transactions })
      },
    })
    const { outbox, held, ancestors, failedHooksWaiting, isShared } = stores
    const onWrite = async (): Promise<void> => maintenance?.notifyWrite()
    const { maxCachedBytes: maxBytes } = settings.limits
    graph = new CachingStore({ store: stores.graph, maxBytes, isShared, onWrite, logger })
    await graph.open()
    const { config, deployed } = await pinGenesis({ graph, config: settings, ...(deploy && { deploy }) })
    overlay = createOverlay({ config, graph, outbox, held, logger })
    const { writeLock, submit } = overlay.engine
    if (deployed !== undefined) await submit({ beef: deployed.beef, topics: [TOPICS.names] })
    const index = new IndexMaintenance({
      store: stores.maintenance,
      graph,
      runLocked: (work) => writeLock.runOnIndex(work).finally(writeLock.onWritten),
      logger,
    })
    maintenance = index
    await index.open()
    writeLock.assertIndexComplete = () => index.assertIndexComplete()
    backlog = new BacklogWorker({
      graph,
      // A rebuild works off the backlog itself.
      runLocked: (work) => writeLock.runOnIndex(async () => !index.isRebuilding && (await work())),
      isWriting: () => writeLock.isLocked,
      logger,
    })
    writeLock.onWritten = () => backlog?.notify()
    backlog.notify()
    return {
      ...{ config, graph, overlay, maintenance, backlog, ancestors, isShared, failedHooksWaiting },
      close,
    }
  } catch (error) {
    await close()
    if (error instanceof ConfigError) throw error
    const reason = reasonOf(error instanceof StoreUnavailableError ? error.cause : error)
    throw new StartError(`cannot open the store in ${placeOf(settings)}: ${reason}`, { cause: error })
  }
}
