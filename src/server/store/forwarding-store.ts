import type { AdmissionOptions } from '../../../backend/src/graph/admission-rules.js'
import type { Attribute } from '../../../backend/src/graph/attributes.js'
import type {
  BlockedQuery,
  BlockedRecord,
  BlockedSubject,
  Blocklist,
} from '../../../backend/src/graph/blocklist.js'
import type {
  ByteRange,
  KeptAnswer,
  OrdinalStep,
  RawTransaction,
  RecordOptions,
  StreamChunk,
  StreamQuery,
  StreamSummary,
} from '../../../backend/src/graph/graph-store.js'
import type { HostStore } from '../../../backend/src/graph/host-store.js'
import type { MapState } from '../../../backend/src/graph/map-merge.js'
import type {
  AdmissionRecord,
  Block,
  GraphRecords,
  NameRecord,
  NodeRecord,
  OutputRecord,
  SpendRecord,
  TransactionRecord,
} from '../../../backend/src/graph/records.js'
import type { Outpoint } from '../../../backend/src/protocol/outpoint.js'

/**
 * A store that has another do everything, on whatever engine that is. Whoever extends it says what it does otherwise. It
 * hands on the promises that it is given: a read through it takes no turn more than one without it.
 */
export class ForwardingStore implements HostStore {
  constructor(readonly store: HostStore) {}

  open(): Promise<void> {
    return this.store.open()
  }

  ping(): Promise<void> {
    return this.store.ping()
  }

  isEmpty(): Promise<boolean> {
    return this.store.isEmpty()
  }

  setting(name: string): Promise<string | undefined> {
    return this.store.setting(name)
  }

  setSetting(name: string, value: string): Promise<void> {
    return this.store.setSetting(name, value)
  }

  reorgCount(): Promise<number> {
    return this.store.reorgCount()
  }

  written(): Promise<number> {
    return this.store.written()
  }

  deriveBy(admission: AdmissionOptions): void {
    this.store.deriveBy(admission)
  }

  record(records: GraphRecords, options?: RecordOptions): Promise<AdmissionRecord[]> {
    return this.store.record(records, options)
  }

  workOff(): Promise<boolean> {
    return this.store.workOff()
  }

  disprove(block: Block): Promise<number> {
    return this.store.disprove(block)
  }

  evict(outpoint: Outpoint): Promise<void> {
    return this.store.evict(outpoint)
  }

  block(record: BlockedRecord): Promise<BlockedRecord> {
    return this.store.block(record)
  }

  unblock(subject: BlockedSubject): Promise<boolean> {
    return this.store.unblock(subject)
  }

  blocklist(): Blocklist | Promise<Blocklist> {
    return this.store.blocklist()
  }

  blockedPage(query: BlockedQuery): Promise<BlockedRecord[]> {
    return this.store.blockedPage(query)
  }

  readBlocklist(): Promise<void> {
    return this.store.readBlocklist()
  }

  consistent<Answer>(read: () => Promise<Answer>, kept?: KeptAnswer<Answer>): Promise<Answer> {
    return this.store.consistent(read, kept)
  }

  rawTransaction(txid: string): Promise<RawTransaction | undefined> {
    return this.store.rawTransaction(txid)
  }

  transaction(txid: string): Promise<TransactionRecord | undefined> {
    return this.store.transaction(txid)
  }

  holdsTransaction(txid: string): Promise<boolean> {
    return this.store.holdsTransaction(txid)
  }

  heightOf(txid: string): Promise<number | undefined> {
    return this.store.heightOf(txid)
  }

  blocks(query: { from: number }): Promise<Block[]> {
    return this.store.blocks(query)
  }

  lastHeight(): Promise<number> {
    return this.store.lastHeight()
  }

  conflictingBlocks(spends: SpendRecord[]): Promise<Block[]> {
    return this.store.conflictingBlocks(spends)
  }

  isBehind(): Promise<boolean> {
    return this.store.isBehind()
  }

  workBehind(query: { txids: string[]; limit: number }): Promise<number> {
    return this.store.workBehind(query)
  }

  winnerOver(txid: string): Promise<string | undefined> {
    return this.store.winnerOver(txid)
  }

  spenderOf(outpoint: Outpoint): Promise<string | undefined> {
    return this.store.spenderOf(outpoint)
  }

  nameOrigin(name: string): Promise<Outpoint | undefined> {
    return this.store.nameOrigin(name)
  }

  liveNode(domain: string): Promise<Outpoint | undefined> {
    return this.store.liveNode(domain)
  }

  longestNode(name: string): Promise<NodeRecord | undefined> {
    return this.store.longestNode(name)
  }

  genuineNodes(outpoints: Outpoint[]): Promise<NodeRecord[]> {
    return this.store.genuineNodes(outpoints)
  }

  genuineOrigins(outpoints: Outpoint[]): Promise<NameRecord[]> {
    return this.store.genuineOrigins(outpoints)
  }

  namesByPrefix(query: { prefix: string; after?: string; limit: number }): Promise<NameRecord[]> {
    return this.store.namesByPrefix(query)
  }

  output(outpoint: Outpoint): Promise<OutputRecord | undefined> {
    return this.store.output(outpoint)
  }

  firstContentOutput(txid: string): Promise<OutputRecord | undefined> {
    return this.store.firstContentOutput(txid)
  }

  currentOutput(outpoint: Outpoint): Promise<Outpoint | undefined> {
    return this.store.currentOutput(outpoint)
  }

  ordinalAt(outpoint: Outpoint, sequence: number): Promise<OrdinalStep | undefined> {
    return this.store.ordinalAt(outpoint, sequence)
  }

  ownMap(outpoint: Outpoint): Promise<MapState> {
    return this.store.ownMap(outpoint)
  }

  mergedMap(outpoint: Outpoint, limit?: number): Promise<MapState | undefined> {
    return this.store.mergedMap(outpoint, limit)
  }

  tipsWith(query: { attributes: Attribute[]; limit: number; after?: Outpoint }): Promise<Outpoint[]> {
    return this.store.tipsWith(query)
  }

  lineage(outpoint: Outpoint): AsyncIterable<Outpoint> {
    return this.store.lineage(outpoint)
  }

  shortBody(sha256: string): Promise<Uint8Array | undefined> {
    return this.store.shortBody(sha256)
  }

  contentChunks(sha256: string, range?: ByteRange): AsyncIterable<Uint8Array> {
    return this.store.contentChunks(sha256, range)
  }

  stream(query: StreamQuery): Promise<StreamSummary | undefined> {
    return this.store.stream(query)
  }

  streamChunks(query: StreamQuery, from?: number): AsyncIterable<StreamChunk> {
    return this.store.streamChunks(query, from)
  }

  admissionsOf(outpoint: Outpoint): Promise<AdmissionRecord[]> {
    return this.store.admissionsOf(outpoint)
  }

  admissionsAmong(outpoints: Outpoint[]): Promise<AdmissionRecord[]> {
    return this.store.admissionsAmong(outpoints)
  }

  admissionsOfTransaction(txid: string): Promise<AdmissionRecord[]> {
    return this.store.admissionsOfTransaction(txid)
  }

  unspentOfTopic(query: { topic: string; since: number; limit?: number }): Promise<AdmissionRecord[]> {
    return this.store.unspentOfTopic(query)
  }

  isApplied(topic: string, txid: string): Promise<boolean> {
    return this.store.isApplied(topic, txid)
  }

  lastInteraction(host: string, topic: string): Promise<number> {
    return this.store.lastInteraction(host, topic)
  }

  setLastInteraction(host: string, topic: string, since: number): Promise<void> {
    return this.store.setLastInteraction(host, topic, since)
  }
}
