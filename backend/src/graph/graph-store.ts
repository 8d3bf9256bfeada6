import type { Outpoint } from '../protocol/outpoint.js'
import type { OnRefusal } from './admission-rules.js'
import type { Attribute } from './attributes.js'
import type { BlocklistStore } from './blocklist.js'
import type { Sighting, Tier } from './conflict-resolution.js'
import type { Dependency } from './dependencies.js'
import type { Reason } from './errors.js'
import type { ListingsReader } from './listings.js'
import type { MapState } from './map-merge.js'
import type {
  AdmissionRecord,
  Block,
  NameRecord,
  NodeRecord,
  OutputRecord,
  Proof,
  SpendRecord,
  TransactionRecord,
} from './records.js'
import type { Awaitable } from './yield-to-event-loop.js'

/**
 * The ports of the admitted graph: what a store does, by role. Storage, lookup services and gateway know each other by
 * these alone. Every read is answered from an index; none follows the chain. Most answer synchronously; one that may take many
 * rows yields in between, and returns a promise if it does.
 */

/** A role read through a wrapper that may yield before it answers, so each answer may be a promise. */
export type Paced<Role> = {
  [Name in keyof Role]: Role[Name] extends (...args: infer Asked) => infer Answer
    ? (
        ...args: Asked
      ) => [Answer] extends [Generator | AsyncIterable<unknown>] ? Answer : Answer | Promise<Awaited<Answer>>
    : Role[Name]
}

/** A store of such roles. */
export type PacedStore<Store> = { readonly [Role in keyof Store]: Paced<Store[Role]> }

/** What the writes of a store add and take back. */
export interface GraphWriter {
  /**
   * Adds transactions: all of one call or none of them. One that is already stored changes nothing but its proof. Which of them
   * count, and all else, follows in the same write.
   *
   * @param options.subjects Transactions that are refused if they do not count, unless they are mined.
   * @returns The outputs that topics hold because of this call, and did not before.
   * @throws LostConflictError if one of the subjects is refused; then nothing is added, unless it waits
   * ({@link RecordOptions.keepLost}).
   */
  record(transactions: readonly TransactionRecord[], options?: RecordOptions): Promise<AdmissionRecord[]>
  /** Blocks an output for good, as the engine's eviction: it is no longer found, and no later `record` brings it back. */
  evict(outpoint: Outpoint): Promise<void>
  /**
   * Removes the proofs that lead to a block, which the chain no longer has. What depended on them is decided again in the
   * same write.
   *
   * @returns How many transactions lost their proof.
   */
  disprove(block: Block): Promise<number>
}

export interface RecordOptions {
  subjects?: readonly string[]
  /**
   * Stores subjects that lose nevertheless, for a store that derives admissions: they wait, without being part of any answer,
   * until a proof or a sighting makes them win, and count from that write on. But none that lost to a mined one, or that come
   * with double spends among what they are built on. How many wait is limited: first to go are the oldest of the client that
   * has the most.
   */
  keepLost?: {
    /** Who submits it, as up to 8 bytes in hex. */
    client?: string | undefined
  }
  /** Where the write stands, for a store that has a queue. */
  place?: WritePlace
  /** Called for what the rules do not admit. */
  onRefusal?: OnRefusal
}

/** Where a write stands in the queue of a store. */
export interface WritePlace {
  /** The highest goes first; by default 0, before any submission. */
  priority?: number
  /** About how much there is to write, in bytes. */
  weight?: number
  /** For how many milliseconds it may wait behind one write in progress; by default, as long as it takes. */
  patience?: number
}

/** A stored transaction whose bytes are only read when asked for. */
export interface RawTransaction {
  txid: string
  proof?: Proof
  /** In bytes. */
  length: number
  /** The chunks of its bytes, starting with the one that holds byte `from`; each is read when it is asked for. */
  chunks(from?: number): Iterable<{ at: number; bytes: Uint8Array }>
}

export interface TransactionsReader {
  get(txid: string): TransactionRecord | undefined
  raw(txid: string): RawTransaction | undefined
  /** Whether a transaction is stored. Reads none of its bytes. */
  has(txid: string): boolean
  /** The height of the block that a transaction is proven to be in; undefined if it is unproven. */
  heightOf(txid: string): number | undefined
  /** The transaction that spends an outpoint and counts. There is one at most. */
  spenderOf(outpoint: Outpoint): string | undefined
  /** Why a stored transaction does not count; undefined if it counts or is not known. */
  reasonAgainst(txid: string): Reason | undefined
  /** How far these are known to the network, by themselves or by a descendant; of stored ones only. */
  tiers(txids: string[]): Map<string, Tier>
}

/** What the network said last of a transaction. */
export interface SightingRecord {
  txid: string
  status: Sighting
}

/** What a write of sightings came to. */
export interface RecordedSightings {
  /** Those that are new, or say something else than before. */
  changed: SightingRecord[]
  /** The transactions that became active or inactive because of them. */
  restored: string[]
  deactivated: string[]
}

/**
 * What the network said of transactions: answers to questions of this host, and callbacks that carry its token
 * (`docs/conflicts.md`, Sightings). Not derived from anything else, and kept for good.
 */
export interface SightingsStore {
  /**
   * Records what was said last of transactions, also of such as are not stored: then it counts when they come. Conflicts are
   * decided in the same write. What is known already is not written again.
   */
  record(records: readonly SightingRecord[]): Promise<RecordedSightings>
  /** What was recorded of these transactions themselves. */
  of(txids: string[]): Map<string, Sighting>
}

/** Where transactions are read from: a store, or what arrived with a submission. */
export interface TransactionSource {
  get(txid: string): Awaitable<TransactionRecord | undefined>
  raw?(txid: string): Awaitable<RawTransaction | undefined>
}

/** The blocks that stored proofs lead to. */
export interface BlocksReader {
  /** From a height on, highest first. */
  from(query: { from: number }): Block[]
  /** The height of the highest one; 0 if there is none. */
  lastHeight(): number
  /** Those that prove transactions in conflict with these spends: others that spend the same and are mined, or spent by one that is. */
  ofConflicts(spends: SpendRecord[]): Awaitable<Block[]>
}

/** Which mints count for a question about live nodes. */
export interface NodeFilter {
  /** Only those that are proven or seen: an unseen one neither makes a node nor spends one. */
  seen?: boolean
}

export interface NamesReader {
  /** The origin of a claimed name. */
  originOf(name: string): Outpoint | undefined
  /** Those of the names that are claimed, in no order. */
  claimed(names: string[]): NameRecord[]
  /** The node of a domain that no admitted mint has spent. */
  liveNode(domain: string, filter?: NodeFilter): Outpoint | undefined
  /** The live node whose domain is the longest prefix of `name`, including `name` itself. */
  longestNode(name: string, filter?: NodeFilter): NodeRecord | undefined
  /** The genuine node in an outpoint, spent or live. */
  genuineNode(outpoint: Outpoint): NodeRecord | undefined
  /** Those of the outpoints that are genuine nodes, spent or live, in no order. */
  genuineNodes(outpoints: Outpoint[]): Awaitable<NodeRecord[]>
  /** Those of the outpoints that are origins of genuine names, in no order. */
  genuineOrigins(outpoints: Outpoint[]): NameRecord[]
  /** Names that start with `prefix` and come after `after`, in byte order. */
  byPrefix(query: { prefix: string; after?: string; limit: number }): Awaitable<NameRecord[]>
}

/** An ordinal at a step of its life (`service.md` 3.1). */
export interface OrdinalStep {
  /** Where it stood. */
  output: OutputRecord
  /** Steps from its origin, which is 0. */
  sequence: number
  /** The first output of its lineage with content (BRC-159). */
  origin: Outpoint
  /** The output with the latest content at or before the step. */
  content: OutputRecord
  /** What the latest inscription at or before the step that names a parent names. */
  parent?: Outpoint
  /** Whether this is its last step, as far as this store sees. */
  tip: boolean
}

/** Special sequences: the end of the transfer chain, and the origin. */
export const TIP = -1
export const ORIGIN = -2

export interface OrdinalsReader {
  /** An admitted output. */
  output(outpoint: Outpoint): OutputRecord | undefined
  /** The first output of a transaction that has content. */
  firstContentOutput(txid: string): OutputRecord | undefined
  /** Where the ordinal in `outpoint` is now; undefined if it was burnt or went where this store does not see. */
  currentOutput(outpoint: Outpoint): Awaitable<Outpoint | undefined>
  /**
   * The ordinal in `outpoint` at a step of its life: {@link TIP}, {@link ORIGIN}, or a number of steps from its origin.
   * Undefined if there is no such step, or if the origin is not known because the lineage has a hole. An output of another
   * value than 1 satoshi is a chain of one.
   */
  at(outpoint: Outpoint, sequence: number): OrdinalStep | undefined
  /**
   * The whole life of the ordinal in `outpoint`: each outpoint of its unbroken 1-sat lineage, from the first to the tip, read
   * a page at a time. Empty if its origin is not known, as for {@link at}. An output of another value than 1 satoshi is a
   * lineage of one.
   */
  lineage(outpoint: Outpoint): Generator<Outpoint>
}

/** MAP metadata. */
export interface MetadataReader {
  /** The MAP of an output alone, as in its script. */
  own(outpoint: Outpoint): MapState
  /**
   * The MAP of the ordinal in `outpoint`, merged from its origin up to there; for an output of another value than 1 satoshi,
   * its own.
   *
   * @param limit How many bytes of stored MAP may be read; undefined is returned if it takes more.
   */
  merged(outpoint: Outpoint, limit?: number): MapState | undefined
}

export interface AttributesReader {
  /**
   * Where the ordinals with all of these attributes are now, in an order that does not change when they are transferred;
   * continues after the ordinal that is or was in `after`. At most `limit`.
   */
  tipsWith(query: { attributes: Attribute[]; limit: number; after?: Outpoint }): Awaitable<Outpoint[]>
}

/** `length` bytes from the byte `from` on; the first byte is 0. */
export interface ByteRange {
  from: number
  length: number
}

/** The size of a chunk, in bytes: bodies and raw transactions are stored in rows of this size. */
export const CHUNK_BYTES = 256 * 1024

/** The largest short body, in bytes: an answer may hold all of it in memory. */
export const SHORT_BODY = 64 * 1024

/** Bodies, by their SHA-256 in hex. */
export interface ContentReader {
  /**
   * The chunk at a position, counted from 0: {@link CHUNK_BYTES} of a body, or what is left of it. Undefined if there is none;
   * an empty body has an empty one.
   */
  chunk(sha256: string, position: number): Uint8Array | undefined
  /**
   * The chunks of a body in order; with a range, exactly its bytes, and fewer if the body ends before. Empty if there is no
   * such body.
   */
  chunks(sha256: string, range?: ByteRange): Generator<Uint8Array>
}

/** The stream of an output: its own content, and the chunks that its ordinal continues with (`service.md` 2.5). */
export interface StreamQuery {
  outpoint: Outpoint
  /** The content types of further chunks, each an essence in lower case (`Profile`). */
  chunkTypes: readonly string[]
  /** Aborts the summary when its reader has left. */
  signal?: AbortSignal
}

/** A chunk of a stream: its outpoint and its body. `sha256` is hex. */
export interface StreamChunk {
  outpoint: Outpoint
  sha256: string
  length: number
}

/** Consecutive chunks of a stream: their number, total bytes, and the hash of their hashes and lengths in hex. */
export interface StreamSegment {
  chunks: number
  length: number
  sha256: string
}

/** What is known of a stream before its first byte is sent. */
export interface StreamSummary {
  /** That of the first chunk of the ordinal's stream, as inscribed; `application/octet-stream` if unknown. */
  contentType: string
  /** In bytes. */
  length: number
  /** The chunks in order, in groups, so that a range is found without walking from the first. */
  segments: StreamSegment[]
  /** Hash of the segments' hashes and the type, in hex: it changes with the bytes and with the type. */
  sha256: string
}

export interface StreamsReader {
  /** The stream that starts with an output; undefined if the store does not hold it or it has no content. */
  summary(query: StreamQuery): Promise<StreamSummary | undefined>
  /**
   * Its chunks in order, read a page at a time: the output itself and what its ordinal holds at the next steps, up to one
   * without content, one of a type that is no chunk's, or one that is missing. An output of another value than 1 satoshi is
   * a stream of one.
   *
   * @param from How many chunks to leave out; the caller knows that they exist.
   * @param count How many the caller wants, if it knows: then no page has more.
   */
  chunks(query: StreamQuery, from?: number, count?: number): AsyncIterable<StreamChunk>
}

/** A coin whose spender leads on: of a live node, the next mint; of an ordinal, its next transfer. */
export interface FrontierCoin {
  kind: 'node' | 'ordinal'
  outpoint: Outpoint
}

/**
 * Where the stored graph may continue on the chain, for a service that follows it. Each call reads a bounded number of rows; an
 * undefined `next` ends a list.
 */
export interface FrontierReader {
  /** The unspent ordinals among the next `limit` outputs, in the order of their outpoints. */
  tips(query: { after?: Outpoint; limit: number }): { tips: Outpoint[]; next?: Outpoint }
  /** The live nodes and unspent ordinals of the `limit` active transactions that were stored last, latest first. */
  latest(query: { limit: number }): FrontierCoin[]
  /**
   * Those of the next `limit` unproven transactions for which a proof or a sighting matters, by txid: topics hold an output of
   * them, and they are active, were rejected, or wait because they lost a conflict.
   */
  unproven(query: { after?: string; limit: number }): { txids: string[]; next?: string }
}

/** What topics hold. */
export interface AdmissionsReader {
  /** How many scores there are to a millisecond: they count from the time when the store was made, since 1970. */
  readonly scoresPerMs: number
  /** The topics that hold an output. */
  of(outpoint: Outpoint): AdmissionRecord[]
  /** Every admission of these outputs. */
  among(outpoints: Outpoint[]): Awaitable<AdmissionRecord[]>
  /** Every admission of a transaction's outputs. */
  ofTransaction(txid: string): AdmissionRecord[]
  /**
   * The unspent outputs of a topic from a score on, by score.
   *
   * @param query.always An output index: such outputs are returned even if they are spent.
   */
  unspentOfTopic(query: { topic: string; since: number; limit?: number; always?: number }): AdmissionRecord[]
  /** The outputs of a topic from a score on, spent or not, by score. */
  ofTopic(query: { topic: string; since: number; limit: number }): AdmissionRecord[]
  isApplied(topic: string, txid: string): boolean
}

/** How far the sync with a peer has come, by host and topic. */
export interface Interactions {
  last(host: string, topic: string): Promise<number>
  setLast(host: string, topic: string, since: number): Promise<void>
}

export interface ConsistentReader {
  /**
   * Runs reads that belong together, from one snapshot if none of them waits, and otherwise again if a reorganisation happened in
   * between, so that no answer mixes two states.
   *
   * @param read Only reads; may run several times if it returns a promise.
   * @param cache How a caching store may keep this answer.
   * @returns The answer, without a promise if it was cached or read at once.
   * @throws UnstableReadError if reorganisations keep happening.
   */
  consistent<Answer>(read: () => Awaitable<Answer>, cache?: CacheOptions<Answer>): Awaitable<Answer>
  /** The cached answer with a key; undefined if there is none, or it may be out of date. */
  cachedAnswer(key: string): unknown
}

/** An answer that depends on nothing but the question and what the store holds. */
export interface CacheOptions<Answer> {
  /** The whole question, without spaces. */
  key: string
  /** What the answer follows from and a write may change. */
  dependsOn: (answer: Answer) => readonly Dependency[]
  /** About how many bytes the answer takes in memory, beyond what every answer takes. */
  weightOf: (answer: Answer) => number
}

/** The roles that answer readers. */
export interface GraphReader extends ConsistentReader {
  /** Resolves when there is something to read from, in the host of another engine: until then, all else throws. */
  opened?(): Promise<void>
  readonly transactions: TransactionsReader
  readonly names: NamesReader
  readonly ordinals: OrdinalsReader
  readonly metadata: MetadataReader
  readonly attributes: AttributesReader
  readonly content: ContentReader
  readonly streams: StreamsReader
  readonly listings: ListingsReader
}

export interface GraphStore extends GraphReader, GraphWriter {
  readonly blocks: BlocksReader
  readonly sightings: SightingsStore
  readonly frontier: FrontierReader
  readonly admissions: AdmissionsReader
  readonly blocklist: BlocklistStore
  readonly interactions: Interactions
}
