import type { AdmissionsReader, Backlog, NamesReader, TransactionsReader } from '../../graph/graph-store.js'
import type { ListedNode } from '../../graph/listings.js'
import type { Block, OutputRecord } from '../../graph/records.js'
import type { Outpoint } from '../../protocol/outpoint.js'
import type { Lineage } from '../rows/columns.js'
import type { Row } from '../rows/rows.js'
import type { Streams } from './read-streams.js'

/** The place of an output in its lineage. */
export interface Place {
  satoshis: number
  /** Whether it is a coin in front of an ordinal, which is part of no answer. */
  isCarrier: boolean
  lineage: Lineage
  step: number
}

/** The summary of a lineage, as seen from one of its outputs. Numbers are steps. */
export interface LineageSummary extends Place {
  /** See `isComplete` in `columns.ts`. The steps below are those of a complete lineage only. */
  isComplete: boolean
  last: number
  /** The first output with content: in a complete lineage, the origin. */
  origin: number | undefined
  /** The last output with content. */
  content: number | undefined
  /** The last output with a parent that counts. */
  parent: number | undefined
  /** Outputs that were read along with it, by step. */
  outputs?: ReadonlyMap<number, OutputRecord>
  /** Where the MAP from the origin to this output is stored, last first, if that was read along with it. */
  maps?: () => Promise<MapPart[]>
}

/** The MAP kept with an output: its own, or if `merged` a snapshot of all MAP up to it. `length` is in bytes. */
export interface MapPart {
  outpoint: Outpoint
  merged: boolean
  length: number
}

export interface MapStretch {
  lineage: Lineage
  from: number
  to?: number
  limit: number
  /** 1 for the order of the steps, -1 for the reverse. */
  order: 1 | -1
}

/** The ends of a lineage, as steps: see {@link LineageSummary}. */
export interface LineageEnds extends Pick<LineageSummary, 'lineage' | 'last' | 'origin' | 'content'> {
  first: Outpoint
}

/** The columns of an output that a list of steps has, beside the height. */
export const LINEAGE_STEP = [
  'txid',
  'vout',
  'step',
  'content_sha256',
  'content_type',
  'content_length',
  'owner',
  'parent_txid',
  'parent_vout',
  'parent_step',
  'map_length',
]

/** The columns of a map row. */
export const MAP_ROW = ['txid', 'vout', 'map_step', 'map_length', 'merged_length']

/**
 * The lookups that each engine answers in its own way, as they take several tables, or a table twice: SQL joins them, and
 * MongoDB reads one after the other.
 */
export interface Lookups extends Streams {
  /** The columns of a transaction's proof, and `bytes` and `checksum` of its first chunk. */
  transactionHead(owner: Buffer): Promise<Row | undefined>
  /** The position of the last chunk of a blob, and its length in bytes. */
  lastChunk(owner: Buffer): Promise<{ position: number; length: number } | undefined>
  /** The blocks between two heights that stored proofs lead to, highest first, then by root. */
  blocksBetween(heights: { from: number; to?: number }): Promise<Block[]>
  /**
   * The other transactions, active or not, that spend the same outpoints: each once for nodes and once for other coins. Two
   * transactions may share thousands of outpoints.
   */
  sharedWith(txid: string): Promise<{ spender: string; isNode: boolean }[]>
  spenderOf: TransactionsReader['spenderOf']
  liveNode: NamesReader['liveNode']
  /** The nodes of those of the domains that exist, in no order. */
  nodesOf(domains: string[]): Promise<ListedNode[]>
  unspentOfTopic: AdmissionsReader['unspentOfTopic']
  workBehind: Backlog['workBehind']
  /** The summary of a lineage, as seen from one of its outputs; undefined if the store does not hold the output. */
  summaryOf(outpoint: Outpoint): Promise<LineageSummary | undefined>
  /**
   * At most `limit` outputs of a stretch that have MAP, without blocked ones; and the step of the last one read, blocked or
   * not, if there may be more.
   */
  mapRows(stretch: MapStretch): Promise<{ rows: Row[]; last: number | undefined }>
  /** The steps between two, both included, with the columns {@link LINEAGE_STEP} and the `height` of their transaction. */
  lineageSteps(stretch: MapStretch & { to: number }): Promise<Row[]>
  /** The ends of lineages by their first outputs, in no order: of those that the store holds. */
  lineageEnds(firsts: Outpoint[]): Promise<LineageEnds[]>
  /** At most `limit` lineages with all of the attributes, after `from`, in order. The first attribute is the rarest. */
  lineagesWith(query: { hashes: Buffer[]; from: Lineage | undefined; limit: number }): AsyncIterable<Lineage>
}
