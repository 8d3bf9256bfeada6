import type { Db } from 'mongodb'
import { afterOpening } from '../../graph/host-index.js'
import { lastScore } from '../read/admissions.js'
import { allBlocked, BlocklistFollower } from '../read/blocklist-copy.js'
import { Lineages } from '../read/lineages.js'
import { REBUILD_CHECKPOINT } from '../read/settings.js'
import { formatCheckpoint } from '../rebuild/index-maintenance.js'
import { SPENDS } from '../rows/rows.js'
import { replaceTimes } from '../write/admission-tables.js'
import { GraphStoreBase, type OnReorg } from '../write/graph-store-base.js'
import type { GraphTables } from '../write/graph-tables.js'
import { withTimeout } from './documents.js'
import { lookupsIn } from './lookups.js'
import { MongoOutputTables } from './output-tables.js'
import { MongoTransactionTables } from './transaction-tables.js'
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
  private readonly db: Db
  private readonly opening: (() => Promise<void>) | undefined

  constructor({ db, onReorg, lease, isWatched = false, opening }: MongoGraphStoreOptions) {
    const writer = new MongoWriter({ db, ...(lease !== undefined && { lease }) })
    const database = opening === undefined ? writer.database : afterOpening(opening, writer.database)
    const blocklistCopy = new BlocklistFollower({
      readAll: () => allBlocked(database),
      writeCount: () => writer.writeCount(),
      isWatched,
    })
    super({ database, lookups: lookupsIn(database), blocklistCopy, onReorg })
    this.db = db
    this.writer = writer
    this.opening = opening
  }

  /** Creates missing collections and indexes, and finishes what a crashed writer left. */
  async open(): Promise<void> {
    await this.writer.open()
    await this.requireSchema()
    if ((await lastScore(this.database)) === undefined && !(await this.isEmpty()))
      await this.writer.write(replaceTimes)
    await this.blocklist.refresh()
  }

  async ping(): Promise<void> {
    await withTimeout((options) => this.db.command({ ping: 1 }, options))
  }

  async reorgCount(): Promise<number> {
    return await this.writer.reorgCount()
  }

  async writeCount(): Promise<number> {
    return await this.writer.writeCount()
  }

  protected async write<Result>(write: (tables: GraphTables) => Promise<Result>): Promise<Result> {
    await this.opening?.()
    const derives = this.admission !== undefined
    return await this.writer.write((pending) => {
      const lookups = lookupsIn(pending)
      return write({
        transactions: new MongoTransactionTables({ rows: pending, lookups, derives }),
        outputs: new MongoOutputTables({ pending, lookups }),
        rows: new Lineages(pending, lookups),
      })
    })
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
        await pending.update('graph_pending', {}, { waiting: false, client: null })
      })
      await this.settings.set(REBUILD_CHECKPOINT, formatCheckpoint({ state: 'needed' }))
    }
    await withTimeout((options) =>
      state.updateOne({ _id: STATE_ID }, { $set: { schema: SCHEMA } }, { upsert: false, ...options }),
    )
  }
}
