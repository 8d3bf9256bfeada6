import type { AdmissionOptions } from '../../graph/admission-rules.js'
import type { BlocklistStore } from '../../graph/blocklist.js'
import type { Backlog, CacheOptions, RecordOptions, SightingsStore } from '../../graph/graph-store.js'
import type { HostStore } from '../../graph/host-store.js'
import { optimisticRead } from '../../graph/optimistic-read.js'
import type { AdmissionRecord, Block, GraphRecords } from '../../graph/records.js'
import type { Outpoint } from '../../protocol/outpoint.js'
import { admissionsIn } from '../read/admissions.js'
import { attributesIn } from '../read/attributes.js'
import { type BlocklistCopy, blockedPage } from '../read/blocklist-copy.js'
import { frontierIn } from '../read/frontier.js'
import { Lineages } from '../read/lineages.js'
import { listingsIn } from '../read/listings.js'
import type { Lookups } from '../read/lookups.js'
import { namesIn } from '../read/names.js'
import { metadataIn, ordinalsIn } from '../read/ordinals.js'
import { contentIn } from '../read/read-blobs.js'
import { streamsIn } from '../read/read-streams.js'
import { interactionsIn, settingsIn } from '../read/settings.js'
import { sightingsIn } from '../read/transaction-status.js'
import { blocksIn, transactionsIn } from '../read/transactions.js'
import type { RowDatabase } from '../rows/rows.js'
import type { GraphTables } from './graph-tables.js'
import { headerChainIn } from './header-chain.js'
import { writeBlocked, writeEviction, writeUnblocked } from './index-ordinals.js'
import { writeBacklog, writeDisproof, writeRecords, writeSightings } from './write-records.js'

/** Called after every reorganisation with how many transactions became inactive or active again. */
export type OnReorg = (transactions: number) => void

export interface StoreEngine {
  database: RowDatabase
  lookups: Lookups
  blocklistCopy: Pick<BlocklistCopy, 'get' | 'read' | 'set'>
  onReorg: OnReorg | undefined
}

/** A store by its roles, on any engine. */
export abstract class GraphStoreBase implements HostStore {
  readonly transactions
  readonly blocks
  readonly frontier
  readonly names
  readonly ordinals
  readonly metadata
  readonly attributes
  readonly content
  readonly streams
  readonly listings
  readonly admissions
  readonly interactions
  readonly settings
  readonly headers
  readonly blocklist: BlocklistStore
  readonly backlog: Backlog
  readonly sightings: SightingsStore
  /** For what a host stores beside the graph. */
  readonly database: RowDatabase
  protected admission: AdmissionOptions | undefined
  private readonly blocklistCopy: StoreEngine['blocklistCopy']
  private readonly onReorg: OnReorg | undefined

  constructor({ database, lookups, blocklistCopy, onReorg }: StoreEngine) {
    const lineages = new Lineages(database, lookups)
    this.transactions = transactionsIn(database, lookups, () => this.admission !== undefined)
    this.blocks = blocksIn(database, lookups)
    this.frontier = frontierIn(database, lookups)
    this.names = namesIn(database, lookups)
    this.ordinals = ordinalsIn(database, lineages, lookups)
    this.metadata = metadataIn(lineages)
    this.attributes = attributesIn(database, lineages, lookups)
    this.content = contentIn(lineages)
    this.streams = streamsIn(lookups)
    this.listings = listingsIn({ rows: database, lineages, lookups, ordinals: this.ordinals })
    this.admissions = admissionsIn(database, lookups)
    this.interactions = interactionsIn(database)
    this.settings = settingsIn(database)
    this.headers = headerChainIn(database)
    this.database = database
    this.blocklistCopy = blocklistCopy
    this.onReorg = onReorg
    this.blocklist = this.blocklistRole()
    this.backlog = this.backlogRole(lookups)
    this.sightings = this.sightingsRole()
  }

  abstract open(): Promise<void>
  abstract ping(): Promise<void>
  abstract reorgCount(): Promise<number>
  abstract writeCount(): Promise<number>
  /** Makes all changes of the work or none; none if it throws. No other write runs meanwhile. */
  protected abstract write<Result>(write: (tables: GraphTables) => Promise<Result>): Promise<Result>

  async isEmpty(): Promise<boolean> {
    return (await this.database.first('graph_transactions', {}, { fields: ['txid'] })) === undefined
  }

  deriveBy(admission: AdmissionOptions): void {
    this.admission = admission
  }

  async record(records: GraphRecords, options?: RecordOptions): Promise<AdmissionRecord[]> {
    const { admission } = this
    const { reorganised, derived, admitted, lost } = await this.write((tables) =>
      writeRecords(tables, records, { ...options, admission }),
    )
    this.reportReorg(reorganised)
    options?.onDerived?.(derived)
    for (const each of lost) throw each
    return admitted
  }

  async disprove(block: Block): Promise<number> {
    const { admission } = this
    const { count, reorganised } = await this.write((tables) => writeDisproof(tables, block, { admission }))
    this.reportReorg(reorganised)
    return count
  }

  private sightingsRole(): SightingsStore {
    return {
      of: (txids) => sightingsIn(this.database, txids),
      record: async (records, options) => {
        const { admission } = this
        const { reorganised, derived, ...recorded } = await this.write((tables) =>
          writeSightings(tables, records, { admission }),
        )
        this.reportReorg(reorganised)
        options?.onDerived?.(derived)
        return recorded
      },
    }
  }

  async evict(outpoint: Outpoint): Promise<void> {
    const since = Date.now()
    const subject = await this.write((tables) => writeEviction(tables, { outpoint, since }))
    this.blocklistCopy.set(subject, true)
  }

  consistent<Answer>(read: () => Promise<Answer>, _cache?: CacheOptions<Answer>): Promise<Answer> {
    return optimisticRead(read, () => this.reorgCount())
  }

  cachedAnswer(_key: string): undefined {
    return undefined
  }

  private blocklistRole(): BlocklistStore {
    const { blocklistCopy: copy, database } = this
    return {
      page: (query) => blockedPage(database, query),
      list: () => copy.get(),
      refresh: async () => {
        await copy.read()
      },
      add: async (record) => {
        const written = await this.write((tables) => writeBlocked(tables, record))
        copy.set(record, true)
        return written
      },
      remove: async (subject) => {
        const wasBlocked = await this.write((tables) => writeUnblocked(tables, subject))
        copy.set(subject, false)
        return wasBlocked
      },
    }
  }

  private backlogRole({ workBehind }: Pick<Lookups, 'workBehind'>): Backlog {
    const isBehind = async (): Promise<boolean> =>
      (await this.database.first('graph_backlog', {}, { fields: ['kind'] })) !== undefined
    return {
      isBehind,
      workBehind,
      workOff: async () => {
        if (!(await isBehind())) return false
        const { admission } = this
        const { reorganised } = await this.write((tables) => writeBacklog(tables, { admission }))
        this.reportReorg(reorganised)
        return true
      },
    }
  }

  private reportReorg(transactions: number): void {
    if (transactions > 0) this.onReorg?.(transactions)
  }
}
