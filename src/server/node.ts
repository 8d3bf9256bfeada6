import type { MessagePort } from 'node:worker_threads'
import type { Logger } from 'pino'
import type { AncestorQueue } from '../../backend/src/graph/ancestor-queue.js'
import { StoreUnavailableError } from '../../backend/src/graph/errors.js'
import type { HostStore } from '../../backend/src/graph/host-store.js'
import { TOPICS } from '../../backend/src/protocol/profile.js'
import type { Config } from './config/config.js'
import { ConfigError, reasonOf, StartError } from './config/errors.js'
import { CachingStore } from './store/caching-store.js'
import { assertComplete, IndexMaintenance, type NodeIndex } from './store/index-maintenance.js'
import { placeOf } from './store/open-database.js'
import { type Deploy, pinGenesis, pinTracker } from './store/pinned-genesis.js'
import { type FactStores, openStores, type Stores } from './store/stores.js'
import { admissionOptions } from './submission/admission-options.js'
import { BacklogWorker } from './submission/backlog-worker.js'
import { createOverlay, type Overlay } from './submission/overlay.js'
import type { WriteLock } from './submission/submission-queue.js'
import type { CacheUse } from './telemetry/metrics.js'

/** A node without its HTTP side: the store, and the overlay over it. */
export interface Node {
  /** The settings, with the tree that the store holds. */
  config: Config
  graph: HostStore
  /** The same, past all that is in memory. */
  store: HostStore
  overlay: Overlay
  /** How memory was used. */
  caches: Readonly<Record<'answers' | 'bodies', CacheUse>>
  /** Runs a write of another thread, for a cache that does not see by itself what that changes. */
  writing: CachingStore['writing'] | undefined
  /** Makes the index complete, once started. */
  maintenance: NodeIndex
  /** Works off what writes leave in the backlog, in a store that has one. */
  backlog: BacklogWorker | undefined
  /** Ordinals with missing ancestors. */
  ancestors: AncestorQueue
  /** A port by which another thread writes to a store of facts; undefined where each thread writes by itself. */
  shareWriter(): MessagePort | undefined
  /** Whether other processes may write to the database. */
  isShared: boolean
  close(): Promise<void>
}

/** The thread of the writer, compiled beside this module or bundled with it. */
export const WRITER_THREAD = new URL('./writer-worker.js', import.meta.url)

/**
 * Opens the store in the settings, brings its schema up to date, and puts the overlay on it.
 *
 * @throws StartError if the store cannot be opened; ConfigError if it holds another tree than the settings name.
 */
export async function openNode({
  config: settings,
  logger,
  deploy,
  writerThread,
}: {
  config: Config
  logger: Logger
  /** Makes a tree for an empty store if the settings name none. */
  deploy?: Deploy
  /** The compiled `writer-worker` of a store of facts; without it, this thread writes. */
  writerThread?: URL | undefined
}): Promise<Node> {
  let stores: Stores | FactStores | undefined
  let caching: CachingStore | undefined
  let overlay: Overlay | undefined
  let index: Index | undefined
  const close = async (): Promise<void> => {
    await index?.backlog?.close()
    await index?.maintenance.close()
    await overlay?.close()
    await caching?.close()
    await stores?.close()
  }
  try {
    stores = await openStores(settings, {
      onReorg(transactions) {
        logger.warn({ transactions }, 'a conflict was resolved differently: a branch was reorganised')
        overlay?.emit({ kind: 'reorganised', transactions })
      },
      ...{ logger, writerThread },
    })
    const { held, ancestors, isShared } = stores
    let graph: HostStore
    let caches: Node['caches']
    if ('index' in stores) {
      graph = stores.cached
      caches = stores.caches
    } else {
      const onWrite = async (): Promise<void> => index?.onForeignWrite?.()
      const { maxCachedBytes: maxBytes } = settings.limits
      caching = new CachingStore({ store: stores.graph, maxBytes, isShared, onWrite, logger })
      await caching.open()
      graph = caching
      caches = caching.caches
    }
    const { config, deployed } = await pinGenesis({ graph, config: settings, ...(deploy && { deploy }) })
    const hasQueue = 'index' in stores
    if ('index' in stores) {
      await pinTracker(graph.settings, config)
      stores.deriveBy(admissionOptions(config), config)
      await stores.index.open()
    }
    overlay = createOverlay({ config, graph, held, hasQueue, logger })
    const { engine } = overlay
    if (deployed !== undefined) await engine.submit({ beef: deployed.beef, topics: [TOPICS.names] })
    index =
      'index' in stores
        ? { maintenance: stores.index, backlog: undefined }
        : await maintain(stores, { graph, writeLock: engine.writeLock, logger })
    const { maintenance, backlog } = index
    engine.writeLock.assertIndexComplete = () => assertComplete(maintenance.status)
    const shareWriter = 'index' in stores ? stores.shareWriter : () => undefined
    return {
      ...{
        config,
        graph,
        store: stores.graph,
        overlay,
        caches,
        writing: caching?.writing.bind(caching),
        maintenance,
        backlog,
        ancestors,
        shareWriter,
        isShared,
      },
      close,
    }
  } catch (error) {
    await close()
    if (error instanceof ConfigError) throw error
    const reason = reasonOf(error instanceof StoreUnavailableError ? error.cause : error)
    throw new StartError(`cannot open the store in ${placeOf(settings)}: ${reason}`, { cause: error })
  }
}

/** What a node has beside its store so that the index is complete. */
interface Index extends Pick<Node, 'maintenance' | 'backlog'> {
  /** Called when another process has written. */
  onForeignWrite?: () => Promise<void>
}

/** Compares and rebuilds the index of a store of tables, and works off its backlog. */
async function maintain(
  { maintenance: store }: Pick<Stores, 'maintenance'>,
  { graph, writeLock, logger }: { graph: HostStore; writeLock: WriteLock; logger: Logger },
): Promise<Index> {
  const maintenance = new IndexMaintenance({
    ...{ store, graph, logger },
    runLocked: (work) => writeLock.runOnIndex(work).finally(writeLock.onWritten),
  })
  await maintenance.open()
  const backlog = new BacklogWorker({
    graph,
    // A rebuild works off the backlog itself.
    runLocked: (work) => writeLock.runOnIndex(async () => !maintenance.isRebuilding && (await work())),
    isWriting: () => writeLock.isLocked,
    logger,
  })
  writeLock.onWritten = () => backlog.notify()
  backlog.notify()
  return { maintenance, backlog, onForeignWrite: () => maintenance.notifyWrite() }
}
