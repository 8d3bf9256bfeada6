import type { Knex } from 'knex'
import type { AdmissionOptions } from '../../graph/admission-rules.js'
import type { Attribute } from '../../graph/attributes.js'
import type { BlockedQuery, BlockedRecord, BlockedSubject, Blocklist } from '../../graph/blocklist.js'
import type {
  ByteRange,
  KeptAnswer,
  OrdinalStep,
  RawTransaction,
  RecordOptions,
  StreamChunk,
  StreamQuery,
  StreamSummary,
} from '../../graph/graph-store.js'
import type { HostStore } from '../../graph/host-store.js'
import { EMPTY_MAP, type MapState, mergeMap } from '../../graph/map-merge.js'
import { optimisticRead } from '../../graph/optimistic-read.js'
import type {
  AdmissionRecord,
  Block,
  GraphRecords,
  NameRecord,
  NodeRecord,
  OutputRecord,
  SpendRecord,
  TransactionRecord,
} from '../../graph/records.js'
import type { Outpoint } from '../../protocol/outpoint.js'
import { BlocklistCopy } from '../read/blocklist-copy.js'
import { longestNode } from '../read/longest-node.js'
import { lineageTip, mapUpTo, ordinalAt } from '../read/ordinal-at.js'
import { contentChunks, shortBody } from '../read/read-blobs.js'
import { readMap } from '../read/read-map.js'
import { streamChunks, streamSummary } from '../read/read-streams.js'
import { coalesced } from '../read/request-coalescer.js'
import { lineageOf } from '../read/walk-lineage.js'
import { hexOf, outpointPair } from '../rows/columns.js'
import { writeBlocked, writeEviction, writeUnblocked } from '../write/blocklist.js'
import type { GraphTables } from '../write/graph-tables.js'
import { writeBacklog, writeDisproof, writeRecords } from '../write/write-records.js'
import {
  admissionsAmong,
  admissionsOf,
  admissionsOfTransaction,
  isApplied,
  unspentOfTopic,
} from './admissions.js'
import { tipsWith } from './attributes.js'
import { allBlocked, blockedPage } from './blocklist.js'
import { isMysql } from './dialect.js'
import { writesOf } from './exclusive-write.js'
import { writeTables } from './graph-tables.js'
import { firstContentIn } from './lineages.js'
import { migrate } from './migrations.js'
import { domainsIn, genuineNodes, genuineOrigins, liveNode, nameOrigin, namesByPrefix } from './names.js'
import { knexReader, type SqlReader } from './reader.js'
import { reorgCountOf } from './reorg-count.js'
import { type Rows, rowsIn } from './rows.js'
import {
  blocksFrom,
  conflictingBlocks,
  heightIn,
  isStored,
  winnerIn,
  workBehind,
} from './transaction-status.js'
import { rawTransaction, transactionRecord } from './transactions.js'

export interface SqlGraphStoreOptions {
  /** Takes the writes. */
  writer: Knex
  /** Takes the reads, so that none waits for a write; through the writer's connections where nothing is given. */
  reader?: SqlReader
  /** Told of every conflict that was decided anew, and how many transactions became silent or count again by that. */
  onReorg?: (transactions: number) => void
}

/** The admitted graph on SQL: SQLite, MySQL and MariaDB. Writes go in transactions of knex. */
export class SqlGraphStore implements HostStore {
  /** Another store over the same connections may be made of these. */
  readonly writer: Knex
  readonly reader: SqlReader
  private readonly blocked: BlocklistCopy
  private readonly onReorg: SqlGraphStoreOptions['onReorg']
  private readonly rows: Rows
  private admission: AdmissionOptions | undefined
  readonly reorgCount: () => Promise<number>

  constructor({ writer, reader = knexReader(writer), onReorg }: SqlGraphStoreOptions) {
    this.onReorg = onReorg
    this.writer = writer
    this.reader = reader
    this.blocked = new BlocklistCopy(() => allBlocked(reader))
    this.rows = rowsIn(writer, reader)
    const turns = () => reorgCountOf(reader)
    this.reorgCount = isMysql(writer) ? coalesced(turns) : turns
  }

  /** Brings the schema up to date. */
  async open(): Promise<void> {
    await migrate(this.writer)
    await this.blocked.read()
  }

  async ping(): Promise<void> {
    await this.reader.first('select 1 as one', [])
  }

  async isEmpty(): Promise<boolean> {
    return (await this.reader.first('select txid from graph_transactions limit 1', [])) === undefined
  }

  async setting(name: string): Promise<string | undefined> {
    const row = await this.reader.first('select value from graph_settings where name = ?', [name])
    return row?.value
  }

  async setSetting(name: string, value: string): Promise<void> {
    await this.writer('graph_settings').insert({ name, value }).onConflict(['name']).merge(['value'])
  }

  deriveBy(admission: AdmissionOptions): void {
    this.admission = admission
  }

  async record(records: GraphRecords, options?: RecordOptions): Promise<AdmissionRecord[]> {
    const { admission } = this
    const { turned, admitted } = await this.write((tables) =>
      writeRecords(tables, records, { ...options, admission }),
    )
    this.tell(turned)
    return admitted
  }

  private async write<Result>(write: (tables: GraphTables) => Promise<Result>): Promise<Result> {
    return await writeTables(this.writer, write, this.admission !== undefined)
  }

  async workOff(): Promise<boolean> {
    if (!(await this.isBehind())) return false
    const { admission } = this
    const { turned } = await this.write((tables) => writeBacklog(tables, { admission }))
    this.tell(turned)
    return true
  }

  async disprove(block: Block): Promise<number> {
    const { count, turned } = await this.write((tables) => writeDisproof(tables, block))
    this.tell(turned)
    return count
  }

  consistent<Answer>(read: () => Promise<Answer>, _kept?: KeptAnswer<Answer>): Promise<Answer> {
    return optimisticRead(read, () => this.reorgCount())
  }

  private tell(turned: number): void {
    if (turned > 0) this.onReorg?.(turned)
  }

  async written(): Promise<number> {
    return await writesOf(this.reader)
  }

  async evict(outpoint: Outpoint): Promise<void> {
    const since = Date.now()
    const subject = await this.write((tables) => writeEviction(tables, { outpoint, since }))
    this.blocked.tell(subject, true)
  }

  async block(record: BlockedRecord): Promise<BlockedRecord> {
    const written = await this.write((tables) => writeBlocked(tables, record))
    this.blocked.tell(record, true)
    return written
  }

  async unblock(subject: BlockedSubject): Promise<boolean> {
    const wasBlocked = await this.write((tables) => writeUnblocked(tables, subject))
    this.blocked.tell(subject, false)
    return wasBlocked
  }

  blocklist(): Blocklist | Promise<Blocklist> {
    return this.blocked.get()
  }

  async blockedPage(query: BlockedQuery): Promise<BlockedRecord[]> {
    return await blockedPage(this.reader, query)
  }

  async readBlocklist(): Promise<void> {
    await this.blocked.read()
  }

  async transaction(txid: string): Promise<TransactionRecord | undefined> {
    return await transactionRecord(this.reader, txid)
  }

  async holdsTransaction(txid: string): Promise<boolean> {
    return await isStored(this.reader, txid)
  }

  async rawTransaction(txid: string): Promise<RawTransaction | undefined> {
    return await rawTransaction(this.reader, txid)
  }

  async heightOf(txid: string): Promise<number | undefined> {
    return await heightIn(this.reader, txid)
  }

  async blocks(query: { from: number }): Promise<Block[]> {
    return await blocksFrom(this.reader, query)
  }

  async lastHeight(): Promise<number> {
    const row = await this.reader.first('select max(height) as height from graph_transactions', [])
    return Number(row?.height ?? 0)
  }

  async conflictingBlocks(spends: SpendRecord[]): Promise<Block[]> {
    return await conflictingBlocks(this.reader, spends)
  }

  async isBehind(): Promise<boolean> {
    return (await this.reader.first('select 1 as found from graph_backlog limit 1', [])) !== undefined
  }

  async workBehind(query: { txids: string[]; limit: number }): Promise<number> {
    return await workBehind(this.reader, query)
  }

  async winnerOver(txid: string): Promise<string | undefined> {
    return await winnerIn(this.reader, txid, this.admission !== undefined)
  }

  async nameOrigin(name: string): Promise<Outpoint | undefined> {
    return await nameOrigin(this.reader, name)
  }

  async liveNode(domain: string): Promise<Outpoint | undefined> {
    return await liveNode(this.reader, domain)
  }

  async longestNode(name: string): Promise<NodeRecord | undefined> {
    return await longestNode(domainsIn(this.reader), name)
  }

  async genuineNodes(outpoints: Outpoint[]): Promise<NodeRecord[]> {
    return await genuineNodes(this.reader, outpoints)
  }

  async genuineOrigins(outpoints: Outpoint[]): Promise<NameRecord[]> {
    return await genuineOrigins(this.reader, outpoints)
  }

  async namesByPrefix(query: { prefix: string; after?: string; limit: number }): Promise<NameRecord[]> {
    return await namesByPrefix(this.reader, query)
  }

  async output(outpoint: Outpoint): Promise<OutputRecord | undefined> {
    const output = await this.rows.outputAt(outpoint)
    return output?.carrier ? undefined : output
  }

  async firstContentOutput(txid: string): Promise<OutputRecord | undefined> {
    return await firstContentIn(this.reader, txid)
  }

  async currentOutput(outpoint: Outpoint): Promise<Outpoint | undefined> {
    // A host that runs no `tm_ordinals` knows the origins of names alone.
    const tip = (await lineageTip(this.rows, outpoint)) ?? outpoint
    return (await this.spenderOf(tip)) === undefined ? tip : undefined
  }

  async ordinalAt(outpoint: Outpoint, sequence: number): Promise<OrdinalStep | undefined> {
    return await ordinalAt(this.rows, outpoint, sequence)
  }

  async ownMap(outpoint: Outpoint): Promise<MapState> {
    const output = await this.output(outpoint)
    if (output?.mapLength === undefined) return EMPTY_MAP
    const part = { outpoint, merged: false, length: output.mapLength }
    return mergeMap(EMPTY_MAP, await readMap(this.rows, part))
  }

  async mergedMap(outpoint: Outpoint, limit?: number): Promise<MapState | undefined> {
    return await mapUpTo(this.rows, outpoint, limit)
  }

  async tipsWith(query: { attributes: Attribute[]; limit: number; after?: Outpoint }): Promise<Outpoint[]> {
    return await tipsWith(this.reader, query)
  }

  lineage(outpoint: Outpoint): AsyncGenerator<Outpoint> {
    return lineageOf(this.rows, outpoint)
  }

  async shortBody(sha256: string): Promise<Uint8Array | undefined> {
    return await shortBody(this.rows, sha256)
  }

  contentChunks(sha256: string, range?: ByteRange): AsyncGenerator<Uint8Array> {
    return contentChunks(this.rows, sha256, range)
  }

  async stream(query: StreamQuery): Promise<StreamSummary | undefined> {
    return await streamSummary(this.rows, query)
  }

  streamChunks(query: StreamQuery, from?: number): AsyncGenerator<StreamChunk> {
    return streamChunks(this.rows, query, from)
  }

  async admissionsOf(outpoint: Outpoint): Promise<AdmissionRecord[]> {
    return await admissionsOf(this.reader, outpoint)
  }

  async admissionsAmong(outpoints: Outpoint[]): Promise<AdmissionRecord[]> {
    return await admissionsAmong(this.reader, outpoints)
  }

  async admissionsOfTransaction(txid: string): Promise<AdmissionRecord[]> {
    return await admissionsOfTransaction(this.reader, txid)
  }

  async unspentOfTopic(query: { topic: string; since: number; limit?: number }): Promise<AdmissionRecord[]> {
    return await unspentOfTopic(this.reader, query)
  }

  async isApplied(topic: string, txid: string): Promise<boolean> {
    return await isApplied(this.reader, topic, txid)
  }

  async spenderOf(outpoint: Outpoint): Promise<string | undefined> {
    const row = await this.reader.first(
      // Of a node, only a mint is: a spender that left no node of its own was none.
      `select spender from graph_spends as spends where txid = ? and vout = ? and (
         exists (select 1 from graph_nodes as nodes where nodes.txid = spends.spender)
         or not exists (
           select 1 from graph_nodes as nodes where nodes.txid = spends.txid and nodes.vout = spends.vout
         )
       )`,
      outpointPair(outpoint),
    )
    return row && hexOf(row.spender)
  }

  async lastInteraction(host: string, topic: string): Promise<number> {
    const row = await this.reader.first('select since from graph_interactions where host = ? and topic = ?', [
      host,
      topic,
    ])
    return Number(row?.since ?? 0)
  }

  async setLastInteraction(host: string, topic: string, since: number): Promise<void> {
    await this.writer('graph_interactions')
      .insert({ host, topic, since })
      .onConflict(['host', 'topic'])
      .merge(['since'])
  }
}
