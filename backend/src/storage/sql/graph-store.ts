import type { Knex } from 'knex'
import { deriveInHost, hostRules, once, pinTree } from '../../graph/host-index.js'
import { memoizeByObject } from '../../graph/memoize-by-object.js'
import { BlocklistCopy } from '../read/blocklist-copy.js'
import { metadataIn, ordinalsIn } from '../read/ordinals.js'
import { contentIn } from '../read/read-blobs.js'
import { streamsIn } from '../read/read-streams.js'
import { coalesced } from '../read/request-coalescer.js'
import { GraphStoreBase, type OnReorg } from '../write/graph-store-base.js'
import { type GraphTables, memoizedTables } from '../write/graph-tables.js'
import { admissionsIn } from './admissions.js'
import { attributesIn } from './attributes.js'
import { allBlocked, blockedPage } from './blocklist.js'
import { isMysql, knexReader, knexWriter, readerAfter, type SqlReader } from './database.js'
import { exclusiveWrite, writeCountOf } from './exclusive-write.js'
import { firstContentIn, lineagesIn, mapsIn, rowsIn } from './lineages.js'
import { migrate } from './migrations.js'
import { namesIn } from './names.js'
import { outputTablesIn } from './output-tables.js'
import { interactionsIn, reorgCountOf, settingsIn } from './settings.js'
import { workBehind } from './transaction-status.js'
import { transactionTablesIn } from './transaction-tables.js'
import { blocksIn, transactionsIn } from './transactions.js'

export interface SqlGraphStoreOptions {
  /** Takes the writes. */
  writer: Knex
  /** Takes the reads, so that none waits for a write; by default, the writer's connections do. */
  reader?: SqlReader
  onReorg?: OnReorg
  /** Opens a store that its host does not open: runs before the first read or write, and again after a failure. */
  opening?: () => Promise<void>
}

/** The admitted graph on SQL: SQLite, MySQL and MariaDB. Writes are transactions of knex. */
export class SqlGraphStore extends GraphStoreBase {
  /** For another store over the same connections. */
  readonly writer: Knex
  readonly reader: SqlReader
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
  readonly reorgCount: () => Promise<number>
  protected readonly blocklistCopy: BlocklistCopy
  private readonly opening: (() => Promise<void>) | undefined

  constructor({ writer, reader: plain = knexReader(writer), onReorg, opening }: SqlGraphStoreOptions) {
    super(onReorg)
    this.writer = writer
    this.opening = opening
    const reader = opening === undefined ? plain : readerAfter(opening, plain)
    this.reader = reader
    const rows = rowsIn(writer, reader)
    this.transactions = transactionsIn(reader, () => this.admission !== undefined)
    this.blocks = blocksIn(reader)
    this.names = namesIn(reader)
    this.ordinals = ordinalsIn(rows, {
      spenderOf: this.transactions.spenderOf,
      firstContentOutput: (txid) => firstContentIn(reader, txid),
    })
    this.metadata = metadataIn(rows)
    this.attributes = attributesIn(reader)
    this.content = contentIn(rows)
    this.streams = streamsIn(rows)
    this.admissions = admissionsIn(reader)
    this.interactions = interactionsIn({ knex: writer, reader })
    this.settings = settingsIn({ knex: writer, reader })
    this.blocklistCopy = new BlocklistCopy(() => allBlocked(reader))
    this.blocklist = this.blocklistRole((query) => blockedPage(reader, query))
    this.backlog = this.backlogRole({
      isBehind: async () =>
        (await reader.first('select 1 as found from graph_backlog limit 1', [])) !== undefined,
      workBehind: (query) => workBehind(reader, query),
    })
    const count = () => reorgCountOf(reader)
    this.reorgCount = isMysql(writer) ? coalesced(count) : count
  }

  async open(): Promise<void> {
    await (this.opening ?? (() => migrate(this.writer)))()
    await this.blocklist.refresh()
  }

  async ping(): Promise<void> {
    await this.reader.first('select 1 as one', [])
  }

  async isEmpty(): Promise<boolean> {
    return (await this.reader.first('select txid from graph_transactions limit 1', [])) === undefined
  }

  async writeCount(): Promise<number> {
    return await writeCountOf(this.reader)
  }

  protected async write<Result>(write: (tables: GraphTables) => Promise<Result>): Promise<Result> {
    await this.opening?.()
    return await exclusiveWrite(this.writer, (trx) => write(tablesIn(trx, this.admission !== undefined)))
  }
}

/** @param derives Whether the store derives the admissions of all stored transactions. */
function tablesIn(trx: Knex.Transaction, derives = false): GraphTables {
  const writer = knexWriter(trx)
  return {
    transactions: memoizedTables(transactionTablesIn(trx, { writer, derives })),
    outputs: outputTablesIn(writer),
    rows: { ...lineagesIn(writer), ...mapsIn(writer) },
  }
}

/**
 * The one store of this process over a host's connections, which opens itself: a host numbers the migrations of all its
 * services by position, so that one more in the middle would break the others. Each store has its own copy of the blocklist, so with several of
 * them, what is blocked through one would still be served by the others.
 */
export const sharedStore = memoizeByObject((knex: Knex) => {
  const opening = once(async () => {
    await migrate(knex)
    await pinTree(settingsIn({ knex, reader: knexReader(knex) }), hostRules(store).deployment)
  })
  const store: SqlGraphStore = new SqlGraphStore({ writer: knex, opening })
  deriveInHost(store)
  return store
})
