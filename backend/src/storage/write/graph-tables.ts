import { LRUCache } from 'lru-cache'
import type { Attribute } from '../../graph/attributes.js'
import type { BlockedRecord, BlockedSubject } from '../../graph/blocklist.js'
import type { RankedView, Standing } from '../../graph/conflict-resolution.js'
import type { RawTransaction } from '../../graph/graph-store.js'
import type {
  AdmissionRecord,
  Block,
  NameRecord,
  SpendRecord,
  TransactionRecord,
} from '../../graph/records.js'
import type { Outpoint } from '../../protocol/outpoint.js'
import type { Change, Lineage, Lineages } from '../read/lineages.js'
import type { Maps } from '../read/read-map.js'
import type { Facts, PendingRecord, Row } from '../rows/record-rows.js'
import type { BacklogKind } from './backlog.js'
import type { NewRecordsView } from './new-records.js'

/** The tables that a write adds to. The collections of MongoDB have the same names, and the same rows. */
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

/** Spends that count, and those that do not. */
export type Spends = 'graph_spends' | 'graph_silent_spends'

/** What a write asks of transactions, of what they say, and of what is blocked. */
export interface TransactionTables extends NewRecordsView {
  /** Inserts those rows whose key is not there. */
  insertNew(table: Table, rows: Row[]): Promise<void>
  /** Those of the owners whose pieces are here, as hex. Of the bytes of a transaction, its txid is the owner. */
  held(owners: string[]): Promise<Set<string>>
  /** Takes the pieces of owners away. */
  deleteChunks(owners: Buffer[]): Promise<void>
  get(txid: string): Promise<TransactionRecord | undefined>
  raw(txid: string): Promise<RawTransaction | undefined>
  /** Of those that are known. */
  statuses(txids: string[]): Promise<Standing[]>
  /** Whatever spends of these transactions, silent or not. */
  childrenOf(txids: string[]): Promise<string[]>
  /** Whatever else spends one of these outpoints, silent or not. */
  conflictsOf(spends: SpendRecord[]): Promise<string[]>
  /** Who spends one of these outpoints, silent or not. */
  spendsOf(outpoints: Outpoint[]): Promise<SpendRecord[]>
  /** What a transaction spends, with the values that are known; silent or not, in no order. */
  spendsBy(spender: string): Promise<SpendRecord[]>
  /** The outputs of transactions that something spends which does not know their value. */
  unvaluedOutputs(txids: string[]): Promise<Outpoint[]>
  /** Writes the value of outputs of a transaction wherever they are spent. */
  setSpentValue(spent: { txid: string; vouts: number[]; satoshis: number }): Promise<void>
  /** Every admission of these outputs. */
  admissionsAmong(outpoints: Outpoint[]): Promise<AdmissionRecord[]>
  /** Every admission of the outputs of these transactions. */
  admissionsOf(txids: string[]): Promise<AdmissionRecord[]>
  /** Those of the transactions that spend an admitted output. */
  spendingAdmitted(txids: string[]): Promise<string[]>
  /** See `StatusReader.winnerOver`. */
  winnerOver(txid: string): Promise<string | undefined>
  /**
   * Where transactions stand, and may be made to; for one decision, as what was asked about nodes is not asked again.
   *
   * @param told Transactions of which outputs are told, and about to be written.
   */
  rankedView(told?: ReadonlySet<string>): RankedView
  /**
   * Those of the transactions that may have to turn, or to have others turn: that do not count, are built on what does not, or
   * spend what another one spends, too. Others may be among them.
   */
  questionable(txids: string[]): Promise<string[]>
  /** The last place in the order of arrival that is taken; 0 where none is. */
  lastInsertion(): Promise<number>
  /** Those of the transactions that are known and do not count. */
  inactiveAmong(txids: string[]): Promise<Set<string>>
  setInactive(txids: string[], silent: boolean): Promise<void>
  setProof(txid: string, proof: NonNullable<TransactionRecord['proof']>): Promise<void>
  /** Takes back the proofs that lead to a block. Returns the transactions that had one. */
  takeProofs(block: Block): Promise<string[]>
  /** Takes so many spends of spenders out of a table. */
  takeSpends(taken: { from: Spends; spenders: string[]; limit: number }): Promise<SpendRecord[]>
  /**
   * What transactions say that count, and the outputs among theirs that keep merged MAP: so many of their outputs, and all of
   * their nodes and names.
   */
  factsOf(txids: string[], limit: number): Promise<Facts & { merged: Outpoint[] }>
  deleteFacts(outpoints: Outpoint[]): Promise<void>
  /** Takes out so much of what transactions would say that do not count, as `inactiveFactRows` has it. */
  takeInactiveFacts(txids: string[], limit: number): Promise<{ kind: string; body: unknown }[]>
  /** Those of the transactions that are pending. */
  pendingAmong(txids: string[]): Promise<PendingRecord[]>
  /** The pending transactions that go first: unproven before proven, in the order in which they came. */
  firstPending(limit: number): Promise<PendingRecord[]>
  setPendingProven(txid: string): Promise<void>
  deletePending(txids: string[]): Promise<void>
  /** What all pending transactions come to. */
  pendingTotal(): Promise<PendingTotal>
  setPendingTotal(total: PendingTotal): Promise<void>
  /** Forgets a transaction of which nothing is said but what it spends: its bytes, its proof, its spends. */
  deleteTransaction(txid: string): Promise<void>
  /** Takes so many out of what earlier writes have left to be done. */
  takeBacklog(kind: BacklogKind, limit: number): Promise<Outpoint[]>
  /** Whether anything of a kind is left to be done. */
  hasBacklog(kind: BacklogKind): Promise<boolean>
  /** Counts that a branch has turned, where nothing else does. */
  countReorg(): Promise<void>
  /** Writes that something is blocked; of what is blocked already, the reason. Returns it as it stands. */
  setBlocked(record: BlockedRecord): Promise<BlockedRecord>
  /** Returns whether it was blocked. */
  deleteBlocked(subject: BlockedSubject): Promise<boolean>
}

/** `bytes` are those of raw transactions. */
export interface PendingTotal {
  transactions: number
  bytes: number
}

/** The last output of a lineage. */
export interface Tip {
  lineage: Outpoint
  step: number
  /** Whose it is where nothing spends it, as hex; undefined where something does, or nobody is known. */
  holder: string | undefined
  /** Whether it has content, a parent or MAP. */
  says: boolean
  hasMap: boolean
}

/** An output that starts a lineage though the coin that it received is here. */
export interface Head {
  outpoint: Outpoint
  previous: Outpoint
}

/** An output with MAP, at its step. */
export interface MapStep {
  outpoint: Outpoint
  step: number
  /** Of its own MAP, in bytes. */
  length: number
}

/** What a write asks of outputs along their lineages. */
export interface OutputTables {
  /** Those of the outputs of which it is not known what they received. */
  unresolvedAmong(outpoints: Outpoint[]): Promise<Outpoint[]>
  /** The indexes of such outputs of a transaction. */
  unresolvedOf(txid: string): Promise<number[]>
  /** The transactions that spend of these, and have such outputs. */
  unresolvedSpenders(txids: string[]): Promise<string[]>
  /** Writes that it is known what an output received: a coin, or none of which it would be the next. */
  settle(outpoint: Outpoint, previous: Outpoint | undefined): Promise<void>
  /** Those of the outputs that are here, and the values that they have. */
  valuesAmong(outpoints: Outpoint[]): Promise<{ outpoint: Outpoint; satoshis: number }[]>
  /** What the outputs received, of those that are not the origin of a name. */
  receivedBy(outpoints: Outpoint[]): Promise<Outpoint[]>
  /** The outputs of transactions that something here received, and that are not here themselves. */
  missingBehind(txids: string[]): Promise<Outpoint[]>
  /** Those of the outputs that are all of their lineage. */
  aloneAmong(outpoints: Outpoint[]): Promise<Outpoint[]>
  /** Those of the outputs that stand first in a lineage, and are the only ones there to say anything. */
  quietAmong(outpoints: Outpoint[]): Promise<Outpoint[]>
  /** Those of the outpoints that something spends which counts. */
  spentAmong(outpoints: Outpoint[]): Promise<Outpoint[]>
  /** Those of the outputs that are carriers. */
  carriersAmong(outpoints: Outpoint[]): Promise<Outpoint[]>
  /** Makes carriers what they are to be. */
  admitCarriers(rows: Row[]): Promise<void>
  /** The outputs that received one of these, which may not be here. */
  receiversOf(outpoints: Outpoint[]): Promise<Outpoint[]>
  /** Those of the outputs that do not stand at the first step of their lineage. */
  furtherAmong(outpoints: Outpoint[]): Promise<Outpoint[]>
  /** The heads among outputs. An origin of a name is none. */
  headsAmong(outpoints: Outpoint[]): Promise<Head[]>
  /** The heads that received one of the outputs. */
  headsBehind(outpoints: Outpoint[]): Promise<Head[]>
  /** Puts the outputs of a lineage from a step on into another one, with every count of steps so many further. */
  moveSteps(moved: { lineage: Lineage; from: number; to: Lineage; further: number }): Promise<void>
  /** Those of the outputs that are here, and where they stand. */
  stepsOf(outpoints: Outpoint[]): Promise<(Change & { outpoint: Outpoint })[]>
  /** The names whose origin is one of the outpoints. */
  namesAmong(outpoints: Outpoint[]): Promise<NameRecord[]>
  /** The last outputs of lineages, of those that have any output. */
  tipsOf(lineages: Outpoint[]): Promise<Tip[]>
  /** Whether an output from a step on has MAP; blocked or not. */
  hasMap(place: { lineage: Lineage; from: number }): Promise<boolean>
  /** The outputs from a step on that keep merged MAP; blocked or not. */
  mergedFrom(place: { lineage: Lineage; from: number }): Promise<Outpoint[]>
  /**
   * A page of the outputs from a step on that have MAP, without those that are blocked, in their order; and the step at
   * which the next page starts, where there may be one.
   */
  mapsFrom(page: {
    lineage: Lineage
    from: number
    limit: number
  }): Promise<{ maps: MapStep[]; next: number | undefined }>
  /** Writes how many bytes of merged MAP an output keeps; null where it keeps none. */
  setMerged(outpoint: Outpoint, length: number | null): Promise<void>
  /** Whether an output of a lineage from a step on has content, a parent or MAP. */
  saysFrom(place: { lineage: Lineage; from: number }): Promise<boolean>
  deleteAttributes(lineages: Outpoint[], kinds: Attribute['kind'][]): Promise<void>
}

/**
 * What one write asks of a database, and each kind of database answers its own way: statements, and nothing that is
 * decided. What counts, and what follows from it, is the same on all of them, and is written once over this.
 */
export interface GraphTables {
  readonly transactions: TransactionTables
  readonly outputs: OutputTables
  /** What reads ask, with what the write has written so far. */
  readonly rows: Lineages & Maps
}

/** How much one write remembers: spends, and bytes of raw transactions. What a large transaction is asked for fits. */
const MAX_SPENDS = 50_000
const MAX_BYTES = 16 * 1024 * 1024

/** Tables of which a write may change what is remembered. */
const CHANGING = new Set(['graph_transactions', 'graph_pieces', 'graph_spends', 'graph_silent_spends'])

/**
 * The tables of one write, which asks several times what a transaction spends and what it is: to judge it, to settle its
 * outputs, and to keep what it is built on.
 */
export function memoizedTables(tables: TransactionTables): TransactionTables {
  const spends = new LRUCache<string, SpendRecord[]>({
    maxSize: MAX_SPENDS,
    sizeCalculation: ({ length }) => length + 1,
  })
  const transactions = new LRUCache<string, TransactionRecord>({
    maxSize: MAX_BYTES,
    sizeCalculation: ({ raw }) => raw.length,
  })
  const forget = (): void => {
    spends.clear()
    transactions.clear()
  }
  const forgetting =
    <Given extends unknown[], Result>(write: (...given: Given) => Promise<Result>) =>
    async (...given: Given): Promise<Result> => {
      forget()
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
      if (rows.length > 0 && CHANGING.has(table)) forget()
      await tables.insertNew(table, rows)
    },
    setSpentValue: forgetting(tables.setSpentValue),
    setProof: forgetting(tables.setProof),
    takeProofs: forgetting(tables.takeProofs),
    takeSpends: forgetting(tables.takeSpends),
    deleteChunks: forgetting(tables.deleteChunks),
    deleteTransaction: forgetting(tables.deleteTransaction),
  }
}
