import type { Db } from 'mongodb'
import { deriveInHost, hostRules, once, pinTree } from '../../graph/host-index.js'
import { memoizeByObject } from '../../graph/memoize-by-object.js'
import { BlocklistFollower } from '../read/blocklist-copy.js'
import { metadataIn, ordinalsIn } from '../read/ordinals.js'
import { contentIn } from '../read/read-blobs.js'
import { streamsIn } from '../read/read-streams.js'
import { formatCheckpoint, REBUILD_CHECKPOINT } from '../rebuild/index-maintenance.js'
import { GraphStoreBase, type OnReorg } from '../write/graph-store-base.js'
import { type GraphTables, memoizedTables } from '../write/graph-tables.js'
import { admissionsIn } from './admissions.js'
import { attributesIn } from './attributes.js'
import { allBlocked, blockedPage } from './blocklist.js'
import { type Documents, dbDocuments, documentsAfter, withTimeout } from './documents.js'
import { firstContentIn, lineagesIn, mapsIn, streamRowsIn } from './lineages.js'
import { namesIn } from './names.js'
import { outputTablesIn } from './output-tables.js'
import type { PendingDocuments } from './pending-documents.js'
import { interactionsIn, settingsIn } from './settings.js'
import { SPENDS, workBehind } from './transaction-status.js'
import { transactionTablesIn } from './transaction-tables.js'
import { blocksIn, transactionsIn } from './transactions.js'
import { SCHEMA, STATE_ID, stateIn } from './write-lease.js'
import { MongoWriter } from './writer.js'

export interface MongoGraphStoreOptions {
  db: Db
  onReorg?: OnReorg
  /** How long a silent writer keeps the write lease, in milliseconds. */
  lease?: number
  /** Whether the host polls for the writes of others and refreshes the blocklist; by default, the store does so itself. */
  isWatched?: boolean
  /** Opens a store that its host does not open: runs before the first read or write, and again after a failure. */
  opening?: () => Promise<void>
}

/** The admitted graph on MongoDB and on what speaks its wire protocol: one server, a replica set, a sharded cluster. */
export class MongoGraphStore extends GraphStoreBase {
  readonly writer: MongoWriter
  readonly transactions
  readonly blocks
  readonly names
  readonly ordinals
  readonly metadata
  readonly attributes
  readonly content
  readonly streams
  readonly admissions
  readonly interactions
  readonly settings
  readonly blocklist
  readonly backlog
  protected readonly blocklistCopy: BlocklistFollower
  private readonly db: Db
  private readonly documents: Documents
  private readonly opening: (() => Promise<void>) | undefined

  constructor({ db, onReorg, lease, isWatched = false, opening }: MongoGraphStoreOptions) {
    super(onReorg)
    this.db = db
    this.opening = opening
    const plain = dbDocuments(db)
    const documents = opening === undefined ? plain : documentsAfter(opening, plain)
    this.documents = documents
    const writer = new MongoWriter({ db, ...(lease !== undefined && { lease }) })
    this.writer = writer
    const rows = { ...lineagesIn(documents), ...mapsIn(documents), ...streamRowsIn(documents) }
    this.transactions = transactionsIn(documents, () => this.admission !== undefined)
    this.blocks = blocksIn(documents)
    this.names = namesIn(documents)
    this.ordinals = ordinalsIn(rows, {
      spenderOf: this.transactions.spenderOf,
      firstContentOutput: (txid) => firstContentIn(documents, txid),
    })
    this.metadata = metadataIn(rows)
    this.attributes = attributesIn(documents)
    this.content = contentIn(rows)
    this.streams = streamsIn(rows)
    this.admissions = admissionsIn(documents)
    this.interactions = interactionsIn({ documents, writer })
    this.settings = settingsIn({ documents, writer })
    this.blocklistCopy = new BlocklistFollower({
      readAll: () => allBlocked(documents),
      writeCount: () => writer.writeCount(),
      isWatched,
    })
    this.blocklist = this.blocklistRole((query) => blockedPage(documents, query))
    this.backlog = this.backlogRole({
      isBehind: async () => (await documents.first('graph_backlog', {}, { fields: ['kind'] })) !== undefined,
      workBehind: (query) => workBehind(documents, query),
    })
  }

  /** Creates missing collections and indexes, and finishes what a crashed writer left. */
  async open(): Promise<void> {
    await this.writer.open()
    await this.requireSchema()
    await this.blocklist.refresh()
  }

  async ping(): Promise<void> {
    await withTimeout((options) => this.db.command({ ping: 1 }, options))
  }

  async isEmpty(): Promise<boolean> {
    return (await this.documents.first('graph_transactions', {}, { fields: ['txid'] })) === undefined
  }

  async reorgCount(): Promise<number> {
    return await this.writer.reorgCount()
  }

  async writeCount(): Promise<number> {
    return await this.writer.writeCount()
  }

  protected async write<Result>(write: (tables: GraphTables) => Promise<Result>): Promise<Result> {
    await this.opening?.()
    return await this.writer.write((pending) => write(tablesIn(pending, this.admission !== undefined)))
  }

  /** Has the index of an earlier version rebuilt, once. */
  private async requireSchema(): Promise<void> {
    const state = stateIn(this.db)
    const opened = await withTimeout((options) => state.findOne({ _id: STATE_ID }, options))
    if (opened?.schema === SCHEMA) return
    if (!(await this.isEmpty())) {
      // Coinbases do not spend the outpoint that they name.
      await this.writer.write(async (pending) => {
        for (const spends of SPENDS)
          await pending.delete(spends, { txid: Buffer.alloc(32), vout: 0xffffffff })
      })
      await this.settings.set(REBUILD_CHECKPOINT, formatCheckpoint({ state: 'needed' }))
    }
    await withTimeout((options) =>
      state.updateOne({ _id: STATE_ID }, { $set: { schema: SCHEMA } }, { upsert: false, ...options }),
    )
  }
}

/** @param derives Whether the store derives the admissions of all stored transactions. */
export function tablesIn(pending: PendingDocuments, derives = false): GraphTables {
  return {
    transactions: memoizedTables(transactionTablesIn(pending, derives)),
    outputs: outputTablesIn(pending),
    rows: { ...lineagesIn(pending), ...mapsIn(pending) },
  }
}

/**
 * The one store of this process over a host's database. Each store has its own copy of the blocklist, so with several of
 * them, what is blocked through one would still be served by the others. And writers of one process then queue in memory
 * instead of polling the database for the lease.
 */
export const sharedStore = memoizeByObject((db: Db) => {
  const opening = once(async () => {
    await pinTree(
      settingsIn({ documents: dbDocuments(db), writer: store.writer }),
      hostRules(store).deployment,
    )
  })
  const store: MongoGraphStore = new MongoGraphStore({ db, opening })
  deriveInHost(store)
  return store
})
