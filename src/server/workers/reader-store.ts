import type { Logger } from 'pino'
import type { AncestorQueue } from '../../../backend/src/graph/ancestor-queue.js'
import type { Config } from '../config/config.js'
import { CachingStore } from '../store/caching-store.js'
import { openStores } from '../store/stores.js'

/** The store as a reader has it. */
export interface ReaderStore {
  graph: CachingStore
  ancestors: AncestorQueue
  close(): Promise<void>
}

/** Opens the store for reading, while the process that writes has it open. */
export async function openReaderStore(config: Config, logger: Logger): Promise<ReaderStore> {
  const {
    graph: store,
    ancestors,
    isShared,
    close,
  } = await openStores(config, { onReorg() {}, isReader: true })
  const { maxCachedBytes: maxBytes } = config.limits
  const graph = new CachingStore({ store, maxBytes, isShared, isReader: true, logger })
  // Reads tell by this that conflicts are resolved here, as in the process that writes.
  graph.deriveBy({
    rules() {
      throw new Error('a reader admits nothing')
    },
    pending: { maxTransactions: 0, maxBytes: 0 },
    reevaluations: 0,
  })
  await graph.open()
  return { graph, ancestors, close: () => graph.close().then(close) }
}
