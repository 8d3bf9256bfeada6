import type { AdmissionOptions } from '../../graph/admission-rules.js'
import type { BlocklistStore } from '../../graph/blocklist.js'
import type {
  AdmissionsReader,
  AttributesReader,
  Backlog,
  BlocksReader,
  CacheOptions,
  ContentReader,
  Interactions,
  MetadataReader,
  NamesReader,
  OrdinalsReader,
  RecordOptions,
  StreamsReader,
  TransactionsReader,
} from '../../graph/graph-store.js'
import type { HostStore, Settings } from '../../graph/host-store.js'
import { optimisticRead } from '../../graph/optimistic-read.js'
import type { AdmissionRecord, Block, GraphRecords } from '../../graph/records.js'
import type { Outpoint } from '../../protocol/outpoint.js'
import type { BlocklistCopy } from '../read/blocklist-copy.js'
import type { GraphTables } from './graph-tables.js'
import { writeBlocked, writeEviction, writeUnblocked } from './index-ordinals.js'
import { writeBacklog, writeDisproof, writeRecords } from './write-records.js'

/** Called after every reorganisation with how many transactions became inactive or active again. */
export type OnReorg = (transactions: number) => void

/** Everything about a store that does not depend on the engine: it only has to provide {@link GraphStoreBase.write}. */
export abstract class GraphStoreBase implements HostStore {
  abstract readonly transactions: TransactionsReader
  abstract readonly blocks: BlocksReader
  abstract readonly names: NamesReader
  abstract readonly ordinals: OrdinalsReader
  abstract readonly metadata: MetadataReader
  abstract readonly attributes: AttributesReader
  abstract readonly content: ContentReader
  abstract readonly streams: StreamsReader
  abstract readonly admissions: AdmissionsReader
  abstract readonly interactions: Interactions
  abstract readonly settings: Settings
  abstract readonly blocklist: BlocklistStore
  abstract readonly backlog: Backlog

  protected admission: AdmissionOptions | undefined

  constructor(private readonly onReorg: OnReorg | undefined) {}

  abstract open(): Promise<void>
  abstract ping(): Promise<void>
  abstract isEmpty(): Promise<boolean>
  abstract reorgCount(): Promise<number>
  abstract writeCount(): Promise<number>

  /** Runs one write, atomically. */
  protected abstract write<Result>(write: (tables: GraphTables) => Promise<Result>): Promise<Result>

  /** The blocklist in memory. */
  protected abstract readonly blocklistCopy: Pick<BlocklistCopy, 'get' | 'read' | 'set'>

  deriveBy(admission: AdmissionOptions): void {
    this.admission = admission
  }

  async record(records: GraphRecords, options?: RecordOptions): Promise<AdmissionRecord[]> {
    const { admission } = this
    const { reorganised, admitted } = await this.write((tables) =>
      writeRecords(tables, records, { ...options, admission }),
    )
    this.reportReorg(reorganised)
    return admitted
  }

  async disprove(block: Block): Promise<number> {
    const { count, reorganised } = await this.write((tables) => writeDisproof(tables, block))
    this.reportReorg(reorganised)
    return count
  }

  async evict(outpoint: Outpoint): Promise<void> {
    const since = Date.now()
    const subject = await this.write((tables) => writeEviction(tables, { outpoint, since }))
    this.blocklistCopy.set(subject, true)
  }

  consistent<Answer>(read: () => Promise<Answer>, _cache?: CacheOptions<Answer>): Promise<Answer> {
    return optimisticRead(read, () => this.reorgCount())
  }

  /** @param page Reads a page of the blocklist from the database. */
  protected blocklistRole(page: BlocklistStore['page']): BlocklistStore {
    const { blocklistCopy: copy } = this
    return {
      page,
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

  protected backlogRole(reads: Omit<Backlog, 'workOff'>): Backlog {
    return {
      ...reads,
      workOff: async () => {
        if (!(await reads.isBehind())) return false
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
