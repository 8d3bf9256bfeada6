import type { Outpoint } from '../protocol/outpoint.js'
import { PROFILES } from '../protocol/profile.js'
import type { Attribute } from './attributes.js'
import type { ContentSummary, NameRecord, OutputRecord } from './records.js'
import type { Awaitable } from './yield-to-event-loop.js'

/**
 * The lists that people look through: what is newest, what is below a node, the life of an ordinal, ordinals by what they are
 * found by, and what of a transaction is here. Each call takes a fixed number of indexed reads, whatever the store holds; rows
 * come with all that a list shows of them.
 */
export interface ListingsReader {
  counts(): StoreCounts
  /**
   * Genuine names, those mined last first ({@link recencyOf}).
   *
   * @param query.after Continues after this row, wherever it is by now.
   */
  newestNames(query: NewestQuery): Awaitable<ListedName[]>
  /** Inscriptions ({@link isListed}) in the same order: every output with content, reinscriptions of an ordinal as well. */
  newestInscriptions(query: NewestQuery): Awaitable<ListedOutput[]>
  /** The nodes right below a domain, in the order of their characters, 37 at most. */
  childNodes(domain: string): ListedNode[]
  /**
   * Steps of the ordinal in `outpoint`, as `OrdinalsReader.at` counts them. Undefined if its origin is not known.
   *
   * @param query.from The first step to return; by default, the origin or the tip.
   */
  history(query: HistoryQuery): OrdinalHistory | undefined
  /** As `AttributesReader.tipsWith`, with what a list shows of each ordinal. */
  ordinalsWith(query: {
    attributes: Attribute[]
    limit: number
    after?: Outpoint
  }): Awaitable<ListedOrdinal[]>
  /**
   * What of a transaction the topics hold, by output index. Undefined if this store does not have the transaction.
   *
   * @param query.after An output index: continues after that.
   */
  transaction(query: { txid: string; after?: number; limit: number }): ListedTransaction | undefined
  /**
   * When blocks were mined, by height: the time in their header, in seconds since 1970. Only of the headers in this store,
   * which it has if the host keeps its own.
   */
  blockTimes(heights: number[]): Map<number, number>
}

/** Blocked things are counted, too. */
export interface StoreCounts {
  /** Genuine names. */
  names: number
  /** See {@link isListed}. */
  inscriptions: number
  /** All stored transactions, whatever for. */
  transactions: number
}

/** Where a row is in the order of a list, with the row's outpoint. */
export interface ListPlace {
  recency: number
  outpoint: Outpoint
}

export interface NewestQuery {
  after?: ListPlace
  limit: number
}

/** `height` is that of the block that proves the transaction of the outpoint; undefined if it is unproven. */
export interface ListedName extends NameRecord, ListPlace {
  height?: number
}

export interface ListedOutput extends Pick<OutputRecord, 'satoshis' | 'owner' | 'parent'>, ListPlace {
  content: ContentSummary
  height?: number
}

export interface ListedNode {
  domain: string
  /** The live node. Undefined if the one that was is spent by a mint that this store cannot judge yet. */
  outpoint?: Outpoint
  /** How many characters were claimed from it. */
  children: number
}

export interface HistoryQuery {
  outpoint: Outpoint
  order: 'oldest' | 'newest'
  from?: number
  limit: number
}

export interface OrdinalHistory {
  origin: Outpoint
  /** The sequence of its last step. */
  last: number
  steps: HistoryStep[]
}

/** A step in the life of an ordinal, and what is new with it. */
export interface HistoryStep {
  sequence: number
  outpoint: Outpoint
  height?: number
  /** The public key hash, in hex, if the lock is P2PKH. */
  owner?: string
  /** What this step inscribed. */
  content?: ContentSummary
  /** The parent that this step named. */
  parent?: Outpoint
  /** Whether this step has MAP of its own. */
  hasMap: boolean
  /** Set if the operator has blocked this step: nothing that was written in it is shown. */
  blocked?: true
}

/** A step, but for its place, of what an output says. @param height Of the block that its transaction is proven to be in. */
export function historyStep(
  { outpoint, owner, content, parent, mapLength }: OutputRecord,
  height: number | undefined,
): Omit<HistoryStep, 'sequence'> {
  return {
    outpoint,
    ...(height !== undefined && { height }),
    ...(owner !== undefined && { owner }),
    ...(content && { content }),
    ...(parent && { parent }),
    hasMap: mapLength !== undefined,
  }
}

/** An ordinal where it is now. */
export interface ListedOrdinal {
  outpoint: Outpoint
  /** Absent if the start of its lineage is missing: then neither origin nor content is known. */
  origin?: Outpoint
  sequence?: number
  owner?: string
  height?: number
  /** The output with its latest content. */
  contentOutpoint?: Outpoint
  content?: ContentSummary
}

export interface ListedTransaction {
  txid: string
  height?: number
  /** Whether it counts: an inactive one has lost a conflict, and has no outputs here (`docs/conflicts.md`). */
  isActive: boolean
  outputs: TransactionOutput[]
  /** More outputs come after this index. */
  next?: number
}

/** An output that a topic holds. */
export interface TransactionOutput {
  vout: number
  /** As `tm_ordinals` holds it. */
  output?: OutputRecord
  /** The name that was mined in it. */
  name?: string
  /** The domain of the node that it is. */
  domain?: string
  /** The txid of what spends it. */
  spender?: string
  /** Set if the operator has blocked it: nothing else is shown. */
  blocked?: true
}

/** Above every block height, and below the recency of everything unproven. */
const UNPROVEN = 2 ** 32

/**
 * What newest lists are sorted by, highest first, before the outpoint. Proven transactions come by height; unproven ones come
 * before all of them, those that came last first. So the lists depend on the insertion order as far as conflicts do
 * (`docs/conflicts.md`), and not at all once everything is proven.
 *
 * A row moves when its transaction is proven, or its block reorganised: a page read after that may show it once more, or leave
 * it out. All others are shown once.
 */
export function recencyOf({
  height,
  insertionOrder,
}: {
  height: number | undefined
  insertionOrder: number
}): number {
  return height ?? UNPROVEN + Math.max(0, insertionOrder)
}

/** The height that a recency stands for; undefined if it is that of an unproven transaction. */
export function heightIn(recency: number): number | undefined {
  return recency < UNPROVEN ? recency : undefined
}

/** The types, matched exactly, of what is part of something else: names have a list of their own, and streams are listed by their first chunk. */
const PARTS: ReadonlySet<string> = new Set(
  Object.values(PROFILES).flatMap(({ nameContentType, streamChunkContentTypes }) => [
    nameContentType,
    ...streamChunkContentTypes,
  ]),
)

/** Whether an output is in the list of inscriptions. Follows from the output alone. */
export function isListed({ content, carrier }: Pick<OutputRecord, 'content' | 'carrier'>): boolean {
  return content !== undefined && carrier !== true && !PARTS.has(content.contentType)
}
