import type { Logger } from 'pino'
import { StoreUnavailableError } from '../../backend/src/graph/store-unavailable-error.js'
import { TOPICS } from '../../backend/src/protocol/profile.js'
import { BacklogWorker } from './backlog-worker.js'
import { type Config, ConfigError } from './config.js'
import { type Deploy, followTree } from './followed-tree.js'
import { placeOf } from './open-database.js'
import { createOverlay, type Overlay } from './overlay.js'
import { RememberingStore } from './remembering-store.js'
import { StartError } from './start-error.js'
import { openStores, type Stores } from './stores.js'
import { Upkeep } from './upkeep.js'

/** A node without its HTTP side: the store and the overlay over it. */
export interface Node {
  /** The settings, with the tree that the store holds. */
  config: Config
  graph: RememberingStore
  overlay: Overlay
  /** Compares what is answered with what was admitted, when it is told to start. */
  upkeep: Upkeep
  /** Goes on with what writes have left to be done. */
  backlog: BacklogWorker
  /** How many hooks failed, are noted, and wait to be repeated. */
  notesWaiting(): Promise<number>
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
  let graph: RememberingStore | undefined
  let overlay: Overlay | undefined
  let upkeep: Upkeep | undefined
  let backlog: BacklogWorker | undefined
  const close = async (): Promise<void> => {
    await backlog?.close()
    await upkeep?.close()
    await overlay?.close()
    await graph?.close()
    await stores?.close()
  }
  try {
    stores = await openStores(config, (transactions) => {
      logger.warn({ transactions }, 'a conflict was resolved differently: a branch was reorganised')
      overlay?.tell({ kind: 'turned', transactions })
    })
    const { notes, held, notesWaiting, isShared } = stores
    const onWrite = async (): Promise<void> => upkeep?.notice()
    graph = new RememberingStore({ store: stores.graph, isShared, onWrite, logger })
    await graph.open()
    const followed = await followTree({ graph, config, ...(deploy && { deploy }) })
    overlay = createOverlay({ config: followed.config, graph, notes, held, logger })
    if (followed.deployed !== undefined) {
      await overlay.engine.submit({ beef: followed.deployed.beef, topics: [TOPICS.names] })
    }
    const { engine } = overlay
    const index = new Upkeep({
      store: stores.upkeep,
      graph,
      exclusively: (work) => engine.makeWhole(work).finally(engine.onWritten),
      logger,
    })
    upkeep = index
    await index.open()
    engine.requireWhole = () => index.requireWhole()
    backlog = new BacklogWorker({
      graph,
      // Whatever makes the index whole does all of it by itself.
      exclusively: (work) => engine.makeWhole(async () => !index.isRebuilding && (await work())),
      isWriting: () => engine.isWriting,
      logger,
    })
    engine.onWritten = () => backlog?.notice()
    backlog.notice()
    return { config: followed.config, graph, overlay, upkeep, backlog, notesWaiting, close }
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
