import type { Logger } from 'pino'
import type { IndexComparison, IndexRebuild } from '../../../backend/src/graph/index-maintenance.js'
import { BacklogWorker } from './backlog-worker.js'
import { CachingStore } from './caching-store.js'
import { IndexMaintenance, type NodeIndex } from './index-maintenance.js'
import type { NodeStore, Stores } from './stores.js'
import { WriteLock } from './write-lock.js'

/** A store in a database that other processes may share: an index that is compared with what was admitted, and a backlog. */
export class DatabaseStores implements Stores {
  readonly graph
  readonly held
  readonly ancestors
  /** Compares the index with the admitted set, and rebuilds it. */
  readonly maintenance
  readonly isShared = true
  readonly writeLock = new WriteLock()
  private cached: CachingStore | undefined

  constructor(
    private readonly options: Pick<Stores, 'graph' | 'held' | 'ancestors' | 'close'> & {
      maintenance: IndexComparison & IndexRebuild
    },
  ) {
    this.graph = options.graph
    this.held = options.held
    this.ancestors = options.ancestors
    this.maintenance = options.maintenance
  }

  async forNode(options: { maxBytes: number; logger: Logger }): Promise<NodeStore> {
    const { maxBytes, logger } = options
    const { writeLock } = this
    const onWrite = () => index.notifyWrite()
    const graph = new CachingStore({ store: this.graph, maxBytes, isShared: true, onWrite, logger })
    const index = new DatabaseIndex({ store: this.maintenance, graph, writeLock, logger })
    this.cached = graph
    await graph.open()
    await index.open()
    return { graph, caches: graph.caches, writing: graph.writing.bind(graph), index }
  }

  /** The overlay says by which rules. */
  async deriveBy(): Promise<void> {}

  shareWriter(): undefined {}

  async close(): Promise<void> {
    await this.cached?.close()
    await this.options.close()
  }
}

/** Makes the index complete, and works off what writes leave in the backlog. */
export class DatabaseIndex extends IndexMaintenance implements NodeIndex {
  private readonly backlog: BacklogWorker

  constructor(options: {
    store: IndexComparison & IndexRebuild
    graph: CachingStore
    writeLock: WriteLock
    logger: Logger
  }) {
    const { writeLock } = options
    super({
      ...options,
      runLocked: (work) => writeLock.runOnIndex(work).finally(writeLock.onWritten),
    })
    this.backlog = new BacklogWorker({
      ...options,
      // A rebuild works off the backlog itself.
      runLocked: (work) => writeLock.runOnIndex(async () => !this.isRebuilding && (await work())),
      isWriting: () => writeLock.isLocked,
    })
    writeLock.onWritten = () => this.backlog.notify()
  }

  get isBusy(): boolean {
    return this.backlog.isBusy
  }

  async workedOff(): Promise<void> {
    await this.backlog.done()
  }

  override start(): void {
    super.start()
    this.backlog.notify()
  }

  override async close(): Promise<void> {
    await this.backlog.close()
    await super.close()
  }
}
