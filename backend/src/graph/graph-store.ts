import type { Outpoint } from '../protocol/outpoint.js'
import type { Attribute } from './attributes.js'
import type { BlocklistReader, BlocklistWriter } from './blocklist.js'
import type { MapState } from './map-merge.js'
import type {
  AdmissionRecord,
  Block,
  GraphRecords,
  NameRecord,
  NodeRecord,
  OutputRecord,
  Proof,
  SpendRecord,
  TransactionRecord,
} from './records.js'

/**
 * The narrow interfaces that a store of the admitted graph meets. Storage, lookup services and gateway know
 * each other by these alone. Every read is answered from an index; none follows the chain.
 */

export interface GraphWriter {
  /**
   * Adds facts: all of one call or none of it, and a fact that is there already changes nothing. Which transactions count
   * is decided anew in the same step (`standing.ts`).
   *
   * @param options.subject A transaction that is to be refused where it does not count, unless it is mined.
   * @returns The outputs that topics hold by this, and did not before.
   * @throws LostConflictError where it is refused; then nothing is added.
   */
  record(records: GraphRecords, options?: RecordOptions): Promise<AdmissionRecord[]>
  /**
   * Does a part of what earlier writes have left to be done: what follows from one transaction may concern any number of
   * others, and one write looks at so many of them (`docs/submissions.md`).
   *
   * @returns Whether there was anything left; then there may be more.
   */
  workOff(): Promise<boolean>
  /** Blocks an output for good, as what the engine lets go of: it is found no more, and no later `record` brings it back. */
  evict(outpoint: Outpoint): Promise<void>
}

export interface ProofWriter {
  /**
   * Takes the proofs back that lead to a block: the chain does not hold it any more. What depended on them is decided anew
   * in the same step.
   *
   * @returns How many transactions lost their proof.
   */
  disprove(block: Block): Promise<number>
}

export interface RecordOptions {
  subject?: string
  /** Set where the index was emptied since: what transactions spend is told once more, though their bytes are held. */
  again?: boolean
}

export interface TransactionReader {
  transaction(txid: string): Promise<TransactionRecord | undefined>
}

/** A transaction that is held, of which no more is read than is asked for. */
export interface RawTransaction {
  txid: string
  proof?: Proof
  /** In bytes. */
  length: number
  /** The pieces that its bytes stand in, from the one that holds a byte on. */
  pieces(from?: number): AsyncGenerator<{ at: number; bytes: Uint8Array }>
}

export interface RawTransactionReader {
  rawTransaction(txid: string): Promise<RawTransaction | undefined>
}

export interface StatusReader {
  /** The transaction that a silent one lost to, itself or with what it is built on; undefined where it counts, or is not known. */
  winnerOver(txid: string): Promise<string | undefined>
}

export interface ProofReader {
  /** Whether a transaction is stored; none of its bytes are read for it. */
  holdsTransaction(txid: string): Promise<boolean>
  /** The height of the block that a transaction is proven to be in; undefined where it is not. */
  heightOf(txid: string): Promise<number | undefined>
}

export interface ProvenBlocksReader {
  /** The blocks that the kept proofs lead to, from a height on, highest first. */
  blocks(query: { from: number }): Promise<Block[]>
  /** The height of the last block that a kept proof leads to; 0 where there is none. */
  lastHeight(): Promise<number>
  /** The blocks that prove rivals of whatever makes these spends: others that spend the same, and are mined or spent by one that is. */
  conflictingBlocks(spends: SpendRecord[]): Promise<Block[]>
}

export interface WaitingReader {
  /**
   * How much is looked at again when these transactions come: the outpoints that those spend that spend of them; and of the
   * lineages that go on from them, about as many outputs as are moved in the time that one of the others takes.
   *
   * @param query.limit No more are counted, or somewhat more.
   */
  workBehind(query: { txids: string[]; limit: number }): Promise<number>
  /** Whether earlier writes have left anything to be done by {@link GraphWriter.workOff}. */
  isBehind(): Promise<boolean>
}

export interface SpendsReader {
  /** The transaction that spends an outpoint and counts: one at the most. */
  spenderOf(outpoint: Outpoint): Promise<string | undefined>
}

export interface NamesReader {
  /** The origin of a claimed name. */
  nameOrigin(name: string): Promise<Outpoint | undefined>
  /** The node of a domain that no admitted mint has spent. */
  liveNode(domain: string): Promise<Outpoint | undefined>
  /** The live node whose domain is the longest prefix of `name`, `name` itself included. */
  longestNode(name: string): Promise<NodeRecord | undefined>
  /** Those of the outpoints that are genuine nodes, spent or live, in no order. */
  genuineNodes(outpoints: Outpoint[]): Promise<NodeRecord[]>
  /** Those of the outpoints that are origins of genuine names, in no order. */
  genuineOrigins(outpoints: Outpoint[]): Promise<NameRecord[]>
  /** Names that start with `prefix` and come after `after`, in order of their bytes. */
  namesByPrefix(query: { prefix: string; after?: string; limit: number }): Promise<NameRecord[]>
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
  /** Whether it has gone no further, as far as this store sees. */
  tip: boolean
}

/** Sequences that are not counted: the end of the transfer chain, and the origin. */
export const TIP = -1
export const ORIGIN = -2

export interface OrdinalsReader {
  /** An admitted output. */
  output(outpoint: Outpoint): Promise<OutputRecord | undefined>
  /** The first output of a transaction that has content. */
  firstContentOutput(txid: string): Promise<OutputRecord | undefined>
  /**
   * Where the ordinal that stands in `outpoint` is now; undefined where it was burnt, or went where this
   * store does not see.
   */
  currentOutput(outpoint: Outpoint): Promise<Outpoint | undefined>
  /**
   * The ordinal that stands in `outpoint`, at a step of its life: {@link TIP}, {@link ORIGIN}, or so many steps from
   * its origin. Undefined where there is no such step, and where the origin is not known because the lineage has a
   * hole. An output of another value than 1 satoshi is a chain of one.
   */
  ordinalAt(outpoint: Outpoint, sequence: number): Promise<OrdinalStep | undefined>
}

export interface MapReader {
  /** The MAP of an output alone, as it stands in its script. */
  ownMap(outpoint: Outpoint): Promise<MapState>
  /**
   * The MAP of the ordinal that stands in `outpoint`, merged from its origin up to there; of an output of another value
   * than 1 satoshi, its own.
   *
   * @param limit How many bytes of kept MAP may be read for it; undefined where it takes more.
   */
  mergedMap(outpoint: Outpoint, limit?: number): Promise<MapState | undefined>
}

export interface AttributesReader {
  /**
   * Where the ordinals that have all of the traits stand now, in an order of their own that does not change when they
   * go on; from behind the ordinal that stands or stood in `after` on. No more of them than `limit`.
   */
  tipsWith(query: { attributes: Attribute[]; limit: number; after?: Outpoint }): Promise<Outpoint[]>
}

export interface LineageReader {
  /**
   * The whole life of the ordinal that stands in `outpoint`: each outpoint of its unbroken 1-sat lineage, from the first
   * to the tip, read a page at a time. Empty where its origin is not known, as for {@link OrdinalsReader.ordinalAt}. An
   * output of another value than 1 satoshi is a lineage of one.
   */
  lineage(outpoint: Outpoint): AsyncIterable<Outpoint>
}

/** A stretch of bytes: `length` of them from the byte `from` on, which is 0 for the first. */
export interface ByteRange {
  from: number
  length: number
}

/** Up to how many bytes a body is short: it stands in one piece, and may be held whole. */
export const SHORT_BODY = 64 * 1024

export interface ContentReader {
  /** A body of at most {@link SHORT_BODY} bytes, whole; undefined where no such body has that hash. `sha256` is hex. */
  shortBody(sha256: string): Promise<Uint8Array | undefined>
  /**
   * The pieces of a body in order; with a range, exactly its bytes, and fewer where the body ends before. Empty where
   * no body has that hash. `sha256` is hex.
   */
  contentChunks(sha256: string, range?: ByteRange): AsyncIterable<Uint8Array>
}

/** The stream of an output: whatever it holds, and the chunks that its ordinal goes on with (`service.md` 2.5). */
export interface StreamQuery {
  outpoint: Outpoint
  /** The content types of further chunks, each an essence in lower case (`Profile`). */
  chunkTypes: readonly string[]
  /** Ends the summing up of a stream, of which nobody wants to hear any more, with its reason. */
  signal?: AbortSignal
}

/** A chunk of a stream: where it is, and its body. `sha256` is hex. */
export interface StreamChunk {
  outpoint: Outpoint
  sha256: string
  length: number
}

/** A run of chunks of a stream: how many, how many bytes in all, and the hash of their hashes and lengths, in hex. */
export interface StreamSegment {
  chunks: number
  length: number
  sha256: string
}

/** What is said of a stream before its first byte. */
export interface StreamSummary {
  /** That of the chunk that the ordinal's stream starts with, as inscribed; `application/octet-stream` where none is known. */
  contentType: string
  /** In bytes. */
  length: number
  /** The chunks in order, some at a time, so that a range is found without a walk from the first. */
  segments: StreamSegment[]
  /** Of the hashes of the segments and the type, in hex: as long as it is the same, so are the bytes and the type. */
  sha256: string
}

export interface StreamReader {
  /** The stream that starts with an output; undefined where the store does not hold it, or it has no content. */
  stream(query: StreamQuery): Promise<StreamSummary | undefined>
  /**
   * Its chunks in order, read a page at a time: the output itself, and what its ordinal holds at the next steps, up to
   * one without content, one of a type that is no chunk's, or one that is missing here. An output of another value than
   * 1 satoshi is a stream of one.
   *
   * @param from How many chunks to leave out: the caller knows that they are there.
   */
  streamChunks(query: StreamQuery, from?: number): AsyncIterable<StreamChunk>
}

/** What the overlay engine asks of its storage, beside transactions. */
export interface AdmissionsReader {
  /** The topics that hold an output. */
  admissionsOf(outpoint: Outpoint): Promise<AdmissionRecord[]>
  /** Every admission of these outputs. */
  admissionsAmong(outpoints: Outpoint[]): Promise<AdmissionRecord[]>
  /** Every admission of a transaction's outputs. */
  admissionsOfTransaction(txid: string): Promise<AdmissionRecord[]>
  /** The unspent outputs of a topic from a score on, by score. */
  unspentOfTopic(query: { topic: string; since: number; limit?: number }): Promise<AdmissionRecord[]>
  isApplied(topic: string, txid: string): Promise<boolean>
}

/** How far a sync with a peer has come. */
export interface SyncReader {
  lastInteraction(host: string, topic: string): Promise<number>
  setLastInteraction(host: string, topic: string, since: number): Promise<void>
}

export interface ConsistentReader {
  /**
   * Runs reads that belong together, again where a branch has turned meanwhile: so that no answer has of one of its parts
   * what the other has lost.
   *
   * @param read Only reads; may run several times.
   * @param kept What a store that keeps answers in memory may keep this one by.
   * @throws UnstableReadError where branches turn and turn.
   */
  consistent<Answer>(read: () => Promise<Answer>, kept?: KeptAnswer<Answer>): Promise<Answer>
}

/** An answer that depends on nothing but what was asked and what the store holds. */
export interface KeptAnswer<Answer> {
  /** All that was asked. */
  key: string
  /** About how many bytes it takes in memory, what every answer takes left out. */
  weightOf: (answer: Answer) => number
}

export interface GraphStore
  extends GraphWriter,
    BlocklistReader,
    BlocklistWriter,
    ProofWriter,
    ConsistentReader,
    TransactionReader,
    RawTransactionReader,
    StatusReader,
    ProofReader,
    ProvenBlocksReader,
    WaitingReader,
    SpendsReader,
    NamesReader,
    OrdinalsReader,
    MapReader,
    AttributesReader,
    LineageReader,
    ContentReader,
    StreamReader,
    AdmissionsReader,
    SyncReader {}
