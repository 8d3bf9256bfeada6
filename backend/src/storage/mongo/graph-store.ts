import type { Db } from 'mongodb'
import { GraphStoreBase, type OnReorg } from '../graph-store-base.js'
import { metadataIn, ordinalsIn } from '../read/ordinals.js'
import { contentIn } from '../read/read-blobs.js'
import { streamsIn } from '../read/read-streams.js'
import { markText, REBUILD_CHECKPOINT } from '../rebuild/checkpoint.js'
import type { GraphTables } from '../write/graph-tables.js'
import { admissionsIn } from './admissions.js'
import { answered } from './answered.js'
import { attributesIn } from './attributes.js'
import { allBlocked, blockedPage } from './blocklist.js'
import { BlocklistFollower } from './blocklist-follower.js'
import { blocksIn } from './blocks.js'
import { type Documents, dbDocuments } from './documents.js'
import { tablesIn } from './graph-tables.js'
import { firstContentIn, lineagesIn } from './lineages.js'
import { mapsIn } from './maps.js'
import { namesIn } from './names.js'
import { interactionsIn, settingsIn } from './settings.js'
import { streamRowsIn } from './streams.js'
import { SPENDS, workBehind } from './transaction-status.js'
import { transactionsIn } from './transactions.js'
import { MongoWriter } from './writer.js'
import { SCHEMA, STATE_ID, stateIn } from './writer-state.js'

export interface MongoGraphStoreOptions {
  db: Db
  onReorg?: OnReorg
  /** How long a silent writer keeps the write lease, in milliseconds. */
  lease?: number
  /** Whether the host polls for the writes of others and refreshes the blocklist; by default, the store does so itself. */
  isWatched?: boolean
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

  constructor({ db, onReorg, lease, isWatched = false }: MongoGraphStoreOptions) {
    super(onReorg)
    this.db = db
    const documents = dbDocuments(db)
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
    await answered((within) => this.db.command({ ping: 1 }, within))
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
    return await this.writer.write((pending) => write(tablesIn(pending, this.admission !== undefined)))
  }

  /** Has the index of an earlier version rebuilt, once. */
  private async requireSchema(): Promise<void> {
    const state = stateIn(this.db)
    const opened = await answered((within) => state.findOne({ _id: STATE_ID }, within))
    if (opened?.schema === SCHEMA) return
    if (!(await this.isEmpty())) {
      // The outpoint that coinbases name is spent by none of them.
      await this.writer.write(async (pending) => {
        for (const spends of SPENDS)
          await pending.delete(spends, { txid: Buffer.alloc(32), vout: 0xffffffff })
      })
      await this.settings.set(REBUILD_CHECKPOINT, markText({ state: 'needed' }))
    }
    await answered((within) =>
      state.updateOne({ _id: STATE_ID }, { $set: { schema: SCHEMA } }, { upsert: false, ...within }),
    )
  }
}
