import { LRUCache } from 'lru-cache'
import type { Attribute } from '../../graph/attributes.js'
import type { BlockedRecord, BlockedSubject } from '../../graph/blocklist.js'
import type { RankedView, TransactionStatus } from '../../graph/conflict-resolution.js'
import type { RawTransaction } from '../../graph/graph-store.js'
import type {
  AdmissionRecord,
  Block,
  NameRecord,
  SpendRecord,
  TransactionRecord,
} from '../../graph/records.js'
import type { Outpoint } from '../../protocol/outpoint.js'
import type { LineageChange, Lineages, Maps } from '../read/lineages.js'
import type { Lineage } from '../rows/columns.js'
import type { OutputFacts, PendingRecord, RecordRow } from '../rows/record-rows.js'

/** The tables that a write adds to. The collections of MongoDB have the same names and rows. */
type Table =
  | 'graph_transactions'
  | 'graph_pieces'
  | 'graph_outputs'
  | 'graph_nodes'
  | 'graph_names'
  | 'graph_traits'
  | 'graph_admissions'
  | 'graph_applied'
  | 'graph_pending'
  | 'graph_backlog'
  | 'graph_blocked'
  | 'graph_silent_facts'
  | Spends

/** The spends of active and of inactive transactions. */
export type Spends = 'graph_spends' | 'graph_silent_spends'

/** The column `kind` of `graph_backlog`. */
export type BacklogKind = 'judge' | 'decide' | 'settle' | 'keep' | 'carry'

/**
 * The statements on transactions that a write is made of. If nothing else is said, they cover active and inactive
 * transactions, and results come in no order.
 */
export interface TransactionTables {
  /** Inserts the rows whose key is not stored yet. */
  insertNew(table: Table, rows: RecordRow[]): Promise<void>
  /** Those of the owners that have chunks, as hex. The owner of a raw transaction is its txid. */
  held(owners: string[]): Promise<Set<string>>
  /** The blocks that stored proofs lead to, as `blockText`, by txid. */
  blocks(txids: string[]): Promise<Map<string, string>>
  deleteChunks(owners: Buffer[]): Promise<void>
  get(txid: string): Promise<TransactionRecord | undefined>
  raw(txid: string): Promise<RawTransaction | undefined>
  /** The statuses of those that are known. */
  statuses(txids: string[]): Promise<TransactionStatus[]>
  /** The transactions that spend from these. */
  childrenOf(txids: string[]): Promise<string[]>
  /** The other transactions that spend the same outpoints. */
  conflictsOf(spends: SpendRecord[]): Promise<string[]>
  spendsOf(outpoints: Outpoint[]): Promise<SpendRecord[]>
  /** The spends of one transaction, with the values that are known. */
  spendsBy(spender: string): Promise<SpendRecord[]>
  /** The outputs of transactions with a spend that lacks their value. */
  unvaluedOutputs(txids: string[]): Promise<Outpoint[]>
  /** Sets the value of a transaction's outputs in all their spends. */
  setSpentValue(spent: { txid: string; vouts: number[]; satoshis: number }): Promise<void>
  admissionsAmong(outpoints: Outpoint[]): Promise<AdmissionRecord[]>
  /** The admissions of all outputs of these transactions. */
  admissionsOf(txids: string[]): Promise<AdmissionRecord[]>
  /** Those of the transactions that spend an admitted output. */
  spendingAdmitted(txids: string[]): Promise<string[]>
  /** See `TransactionsReader.winnerOver`. */
  winnerOver(txid: string): Promise<string | undefined>
  /**
   * For one decision: it caches what it learns about nodes.
   *
   * @param judged Transactions that this write has judged.
   */
  rankedView(judged?: ReadonlySet<string>): RankedView
  /**
   * Those of the transactions that need a decision: inactive ones, children of inactive ones, and double spends. May include
   * others.
   */
  questionable(txids: string[]): Promise<string[]>
  /** The last place in insertion order that is taken; 0 if there is none. */
  lastInsertionOrder(): Promise<number>
  /** Those of the transactions that are inactive. */
  inactiveAmong(txids: string[]): Promise<Set<string>>
  setInactive(txids: string[], isInactive: boolean): Promise<void>
  setProof(txid: string, proof: NonNullable<TransactionRecord['proof']>): Promise<void>
  /** Deletes the proofs that lead to a block. Returns the transactions that had one. */
  takeProofs(block: Block): Promise<string[]>
  /** Deletes and returns up to `limit` spends of spenders. */
  takeSpends(taken: { from: Spends; spenders: string[]; limit: number }): Promise<SpendRecord[]>
  /**
   * The output records of active transactions: up to `limit` outputs, and all nodes and names. `merged` are the outputs that
   * keep a MAP snapshot.
   */
  factsOf(txids: string[], limit: number): Promise<OutputFacts & { merged: Outpoint[] }>
  deleteFacts(outpoints: Outpoint[]): Promise<void>
  /** Deletes and returns up to `limit` rows made by `inactiveFactRows`. */
  takeInactiveFacts(txids: string[], limit: number): Promise<{ kind: string; body: unknown }[]>
  /** Those of the transactions that are pending. */
  pendingAmong(txids: string[]): Promise<PendingRecord[]>
  /** The pending transactions to delete first: unproven before proven, in insertion order. */
  firstPending(limit: number): Promise<PendingRecord[]>
  setPendingProven(txid: string): Promise<void>
  deletePending(txids: string[]): Promise<void>
  pendingTotal(): Promise<PendingTotal>
  setPendingTotal(total: PendingTotal): Promise<void>
  /** Deletes a transaction that has no output records: its bytes, its proof and its spends. */
  deleteTransaction(txid: string): Promise<void>
  /** Deletes and returns up to `limit` items of the backlog. */
  takeBacklog(kind: BacklogKind, limit: number): Promise<Outpoint[]>
  hasBacklog(kind: BacklogKind): Promise<boolean>
  /** Counts a reorganisation, unless the engine does so by itself. */
  countReorg(): Promise<void>
  /** Blocks something, or changes the reason if it is blocked already. Returns the stored record. */
  setBlocked(record: BlockedRecord): Promise<BlockedRecord>
  /** Returns whether it was blocked. */
  deleteBlocked(subject: BlockedSubject): Promise<boolean>
}

/** Of all pending transactions; `bytes` are those of the raw transactions. */
export interface PendingTotal {
  transactions: number
  bytes: number
}

/** The last output of a lineage. */
export interface Tip {
  lineage: Outpoint
  step: number
  /** Its owner, as hex; undefined if it is spent or the owner is not known. */
  holder: string | undefined
  /** Whether it has content, a parent or MAP. */
  isInscribed: boolean
  hasMap: boolean
}

/** The first output of a lineage although the coin that it received is stored. */
export interface Head {
  outpoint: Outpoint
  previous: Outpoint
}

/** An output with MAP, at its step. */
interface MapStep {
  outpoint: Outpoint
  step: number
  /** Of its own MAP, in bytes. */
  length: number
}

/** The statements on outputs and lineages that a write is made of. An inscribed output has content, a parent or MAP. */
export interface OutputTables {
  /** Those of the outputs whose predecessor is unresolved. */
  unresolvedAmong(outpoints: Outpoint[]): Promise<Outpoint[]>
  /** The indexes of a transaction's outputs whose predecessor is unresolved. */
  unresolvedOf(txid: string): Promise<number[]>
  /** The transactions that spend from these and have such outputs. */
  unresolvedSpenders(txids: string[]): Promise<string[]>
  /** Sets the predecessor of an output: the coin that it received, or undefined for none. */
  resolvePredecessor(outpoint: Outpoint, previous: Outpoint | undefined): Promise<void>
  /** Those of the outputs that are stored, with their values. */
  valuesAmong(outpoints: Outpoint[]): Promise<{ outpoint: Outpoint; satoshis: number }[]>
  /** The predecessors of outputs, except of origins of names. */
  receivedBy(outpoints: Outpoint[]): Promise<Outpoint[]>
  /** The outputs of these transactions that a stored output received, and that are not stored themselves. */
  missingBehind(txids: string[]): Promise<Outpoint[]>
  /** Those of the outputs that are the only one of their lineage. */
  aloneAmong(outpoints: Outpoint[]): Promise<Outpoint[]>
  /** Those of the outputs that are the first of their lineage, with no inscribed output after them. */
  onlyInscribedAmong(outpoints: Outpoint[]): Promise<Outpoint[]>
  /** Those of the outpoints that an active transaction spends. */
  spentAmong(outpoints: Outpoint[]): Promise<Outpoint[]>
  carriersAmong(outpoints: Outpoint[]): Promise<Outpoint[]>
  /** Turns carriers into admitted outputs. */
  admitCarriers(rows: RecordRow[]): Promise<void>
  /** The outputs that received one of these coins, which need not be stored. */
  receiversOf(outpoints: Outpoint[]): Promise<Outpoint[]>
  /** Those of the outputs that are not the first of their lineage. */
  furtherAmong(outpoints: Outpoint[]): Promise<Outpoint[]>
  /** The heads among outputs, except origins of names. */
  headsAmong(outpoints: Outpoint[]): Promise<Head[]>
  /** The heads that received one of the outputs. */
  headsBehind(outpoints: Outpoint[]): Promise<Head[]>
  /** Moves the outputs of a lineage from a step on into another one, and adds `further` to their steps. */
  moveSteps(moved: { lineage: Lineage; from: number; to: Lineage; further: number }): Promise<void>
  /** Those of the outputs that are stored, with their places. */
  stepsOf(outpoints: Outpoint[]): Promise<(LineageChange & { outpoint: Outpoint })[]>
  /** The names whose origin is one of the outpoints. */
  namesAmong(outpoints: Outpoint[]): Promise<NameRecord[]>
  /** The tips of those of the lineages that have outputs. */
  tipsOf(lineages: Outpoint[]): Promise<Tip[]>
  /** Whether an output from a step on has MAP, blocked or not. */
  hasMap(place: { lineage: Lineage; from: number }): Promise<boolean>
  /** The outputs from a step on that keep a MAP snapshot, blocked or not. */
  mergedFrom(place: { lineage: Lineage; from: number }): Promise<Outpoint[]>
  /** A page of the outputs from a step on that have MAP and are not blocked, in order; and the step of the next page, if any. */
  mapsFrom(page: {
    lineage: Lineage
    from: number
    limit: number
  }): Promise<{ maps: MapStep[]; next: number | undefined }>
  /** Sets the length of an output's MAP snapshot in bytes; null if it keeps none. */
  setMerged(outpoint: Outpoint, length: number | null): Promise<void>
  /** Whether an output from a step on is inscribed. */
  isInscribedFrom(place: { lineage: Lineage; from: number }): Promise<boolean>
  deleteAttributes(lineages: Outpoint[], kinds: Attribute['kind'][]): Promise<void>
}

/**
 * The statements of one write, implemented by each engine. They decide nothing: all decisions are made once, in the files
 * beside this one, and so are the same on every engine.
 */
export interface GraphTables {
  readonly transactions: TransactionTables
  readonly outputs: OutputTables
  /** The lookups of reads, with what the write has written so far. */
  readonly rows: Lineages & Maps
}

/** How much one write caches: spends, and bytes of raw transactions. Enough for one large transaction. */
const MAX_SPENDS = 50_000
const MAX_BYTES = 16 * 1024 * 1024

/** Inserts into these tables may change what is cached. */
const CHANGING = new Set(['graph_transactions', 'graph_pieces', 'graph_spends', 'graph_silent_spends'])

/** Caches spends and transactions: a write reads each several times, to judge it, to resolve its outputs and to keep its parents. */
export function memoizedTables(tables: TransactionTables): TransactionTables {
  const spends = new LRUCache<string, SpendRecord[]>({
    maxSize: MAX_SPENDS,
    sizeCalculation: ({ length }) => length + 1,
  })
  const transactions = new LRUCache<string, TransactionRecord>({
    maxSize: MAX_BYTES,
    sizeCalculation: ({ raw }) => raw.length,
  })
  const clear = (): void => {
    spends.clear()
    transactions.clear()
  }
  const clearing =
    <Given extends unknown[], Result>(write: (...given: Given) => Promise<Result>) =>
    async (...given: Given): Promise<Result> => {
      clear()
      return await write(...given)
    }
  return {
    ...tables,
    async spendsBy(spender) {
      const found = spends.get(spender) ?? (await tables.spendsBy(spender))
      spends.set(spender, found)
      return found
    },
    async get(txid) {
      const found = transactions.get(txid) ?? (await tables.get(txid))
      if (found !== undefined) transactions.set(txid, found)
      return found
    },
    async insertNew(table, rows) {
      if (rows.length > 0 && CHANGING.has(table)) clear()
      await tables.insertNew(table, rows)
    },
    setSpentValue: clearing(tables.setSpentValue),
    setProof: clearing(tables.setProof),
    takeProofs: clearing(tables.takeProofs),
    takeSpends: clearing(tables.takeSpends),
    deleteChunks: clearing(tables.deleteChunks),
    deleteTransaction: clearing(tables.deleteTransaction),
  }
}
