import type { Db } from 'mongodb'
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
import type { Lineages } from '../read/lineages.js'
import { longestNode } from '../read/longest-node.js'
import { lineageTip, mapUpTo, ordinalAt } from '../read/ordinal-at.js'
import { contentChunks, shortBody } from '../read/read-blobs.js'
import { type Maps, readMap } from '../read/read-map.js'
import { type Streams, streamChunks, streamSummary } from '../read/read-streams.js'
import { lineageOf } from '../read/walk-lineage.js'
import { markText, REBUILD_CHECKPOINT } from '../rebuild/checkpoint.js'
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
import { answered } from './answered.js'
import { tipsWith } from './attributes.js'
import { allBlocked, blockedPage } from './blocklist.js'
import { BlocklistFollower } from './blocklist-follower.js'
import { blocksIn } from './blocks.js'
import { COLLECTIONS } from './collections.js'
import { type Documents, dbDocuments } from './documents.js'
import { tablesIn } from './graph-tables.js'
import { firstContentIn, lineagesIn } from './lineages.js'
import { mapsIn } from './maps.js'
import { domainsIn, genuineNodes, genuineOrigins, liveNode, nameOrigin, namesByPrefix } from './names.js'
import { streamsIn } from './streams.js'
import {
  conflictingBlocks,
  heightIn,
  isStored,
  SPENDS,
  spenderOf,
  winnerIn,
  workBehind,
} from './transaction-status.js'
import { rawTransaction, transactionRecord } from './transactions.js'
import { MongoWriter } from './writer.js'
import { SCHEMA, STATE_ID, stateIn } from './writer-state.js'

export interface MongoGraphStoreOptions {
  db: Db
  /** Told of every conflict that was decided anew, and how many transactions became silent or count again by that. */
  onReorg?: (transactions: number) => void
  /** How long a writer is waited for that is not heard of, in milliseconds. */
  lease?: number
  /** Whether the host looks for the writes of others, and reads what is blocked anew; by default, the store looks by itself. */
  isWatched?: boolean
}

/** The admitted graph on MongoDB, and on what speaks its wire protocol: a server alone, a replica set, a cluster that shards. */
export class MongoGraphStore implements HostStore {
  readonly writer: MongoWriter
  private readonly db: Db
  private readonly documents: Documents
  private readonly blocked: BlocklistFollower
  private readonly onReorg: ((transactions: number) => void) | undefined
  /** What those reads ask that are the same on every kind of database. */
  private readonly rows: Lineages & Maps & Streams
  private admission: AdmissionOptions | undefined

  constructor({ db, onReorg, lease, isWatched = false }: MongoGraphStoreOptions) {
    const documents = dbDocuments(db)
    this.db = db
    this.onReorg = onReorg
    this.documents = documents
    this.writer = new MongoWriter({ db, ...(lease !== undefined && { lease }) })
    this.blocked = new BlocklistFollower({
      readAll: () => allBlocked(documents),
      written: () => this.writer.written(),
      isWatched,
    })
    this.rows = { ...lineagesIn(documents), ...mapsIn(documents), ...streamsIn(documents) }
  }

  /** Makes what collections and indexes there are not, and finishes what a writer has left. */
  async open(): Promise<void> {
    await this.writer.open()
    await this.requireSchema()
    await this.blocked.read()
  }

  /** What an earlier version has written is indexed again, once. */
  private async requireSchema(): Promise<void> {
    const state = stateIn(this.db)
    const opened = await answered((within) => state.findOne({ _id: STATE_ID }, within))
    if (opened?.schema === SCHEMA) return
    if (!(await this.isEmpty())) {
      // What coinbases name is spent by none of them.
      await this.writer.write(async (pending) => {
        for (const spends of SPENDS)
          await pending.delete(spends, { txid: Buffer.alloc(32), vout: 0xffffffff })
      })
      await this.setSetting(REBUILD_CHECKPOINT, markText({ state: 'needed' }))
    }
    await answered((within) =>
      state.updateOne({ _id: STATE_ID }, { $set: { schema: SCHEMA } }, { upsert: false, ...within }),
    )
  }

  async ping(): Promise<void> {
    await answered((within) => this.db.command({ ping: 1 }, within))
  }

  async isEmpty(): Promise<boolean> {
    return (await this.documents.first('graph_transactions', {}, { fields: ['txid'] })) === undefined
  }

  async setting(name: string): Promise<string | undefined> {
    return (await this.documents.first('graph_settings', { _id: name }, { fields: ['value'] }))?.value
  }

  async setSetting(name: string, value: string): Promise<void> {
    await this.writer.write((pending) => pending.put('graph_settings', { name, value }))
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

  async reorgCount(): Promise<number> {
    return await this.writer.turned()
  }

  async written(): Promise<number> {
    return await this.writer.written()
  }

  private async write<Result>(write: (tables: GraphTables) => Promise<Result>): Promise<Result> {
    return await this.writer.write((pending) => write(tablesIn(pending, this.admission !== undefined)))
  }

  private tell(turned: number): void {
    if (turned > 0) this.onReorg?.(turned)
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
    return await blockedPage(this.documents, query)
  }

  async readBlocklist(): Promise<void> {
    await this.blocked.read()
  }

  async transaction(txid: string): Promise<TransactionRecord | undefined> {
    return await transactionRecord(this.documents, txid)
  }

  async holdsTransaction(txid: string): Promise<boolean> {
    return await isStored(this.documents, txid)
  }

  async rawTransaction(txid: string): Promise<RawTransaction | undefined> {
    return await rawTransaction(this.documents, txid)
  }

  async heightOf(txid: string): Promise<number | undefined> {
    return await heightIn(this.documents, txid)
  }

  async blocks(query: { from: number }): Promise<Block[]> {
    return await blocksIn(this.documents, query)
  }

  async lastHeight(): Promise<number> {
    const last = await this.documents.first(
      'graph_transactions',
      { height: { $gte: 0 } },
      { sort: { height: -1 }, fields: ['height'] },
    )
    return last?.height ?? 0
  }

  async conflictingBlocks(spends: SpendRecord[]): Promise<Block[]> {
    return await conflictingBlocks(this.documents, spends)
  }

  async isBehind(): Promise<boolean> {
    return (await this.documents.first('graph_backlog', {}, { fields: ['kind'] })) !== undefined
  }

  async workBehind(query: { txids: string[]; limit: number }): Promise<number> {
    return await workBehind(this.documents, query)
  }

  async winnerOver(txid: string): Promise<string | undefined> {
    return await winnerIn(this.documents, txid, this.admission !== undefined)
  }

  async nameOrigin(name: string): Promise<Outpoint | undefined> {
    return await nameOrigin(this.documents, name)
  }

  async liveNode(domain: string): Promise<Outpoint | undefined> {
    return await liveNode(this.documents, domain)
  }

  async longestNode(name: string): Promise<NodeRecord | undefined> {
    return await longestNode(domainsIn(this.documents), name)
  }

  async genuineNodes(outpoints: Outpoint[]): Promise<NodeRecord[]> {
    return await genuineNodes(this.documents, outpoints)
  }

  async genuineOrigins(outpoints: Outpoint[]): Promise<NameRecord[]> {
    return await genuineOrigins(this.documents, outpoints)
  }

  async namesByPrefix(query: { prefix: string; after?: string; limit: number }): Promise<NameRecord[]> {
    return await namesByPrefix(this.documents, query)
  }

  async output(outpoint: Outpoint): Promise<OutputRecord | undefined> {
    const output = await this.rows.outputAt(outpoint)
    return output?.carrier ? undefined : output
  }

  async firstContentOutput(txid: string): Promise<OutputRecord | undefined> {
    return await firstContentIn(this.documents, txid)
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
    return await tipsWith(this.documents, query)
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
    return await admissionsOf(this.documents, outpoint)
  }

  async admissionsAmong(outpoints: Outpoint[]): Promise<AdmissionRecord[]> {
    return await admissionsAmong(this.documents, outpoints)
  }

  async admissionsOfTransaction(txid: string): Promise<AdmissionRecord[]> {
    return await admissionsOfTransaction(this.documents, txid)
  }

  async unspentOfTopic(query: { topic: string; since: number; limit?: number }): Promise<AdmissionRecord[]> {
    return await unspentOfTopic(this.documents, query)
  }

  async isApplied(topic: string, txid: string): Promise<boolean> {
    return await isApplied(this.documents, topic, txid)
  }

  async spenderOf(outpoint: Outpoint): Promise<string | undefined> {
    return await spenderOf(this.documents, outpoint)
  }

  async lastInteraction(host: string, topic: string): Promise<number> {
    const doc = await this.documents.first(
      'graph_interactions',
      { _id: COLLECTIONS.graph_interactions.idOf({ host, topic }) },
      { fields: ['since'] },
    )
    return doc?.since ?? 0
  }

  async setLastInteraction(host: string, topic: string, since: number): Promise<void> {
    await this.writer.write((pending) => pending.put('graph_interactions', { host, topic, since }))
  }
}
