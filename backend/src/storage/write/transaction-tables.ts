import { LRUCache } from 'lru-cache'
import type { BlockedRecord, BlockedSubject } from '../../graph/blocklist.js'
import type { RankedView, Sighting, TransactionStatus } from '../../graph/conflict-resolution.js'
import type { Reason } from '../../graph/errors.js'
import type { RawTransaction, SightingRecord } from '../../graph/graph-store.js'
import type { AdmissionRecord, Block, SpendRecord, TransactionRecord } from '../../graph/records.js'
import { blockText } from '../../graph/records.js'
import { yieldBetweenStatements } from '../../graph/yield-to-event-loop.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import { admissionOf, admissionsAmong } from '../read/admissions.js'
import { blockedOf } from '../read/blocklist-copy.js'
import type { Lookups } from '../read/lookups.js'
import { heldChunks } from '../read/read-blobs.js'
import { mapOwner } from '../read/read-map.js'
import {
  type ConflictLookups,
  childrenOf,
  conflictsOf,
  conflictView,
  heightOf,
  reasonIn,
  sightingsIn,
  spendOf,
  spendsOf,
  statuses,
} from '../read/transaction-status.js'
import { rawTransaction, transactionRecord } from '../read/transactions.js'
import {
  groupBy,
  hashColumn,
  hexOf,
  inParts,
  outpointOf,
  parts,
  ROWS_A_STATEMENT,
  unique,
} from '../rows/columns.js'
import {
  blockedRow,
  OUTPUT,
  type OutputFacts,
  outputOf,
  type PendingRecord,
  pendingOf,
  proofColumns,
  type RecordRow,
} from '../rows/record-rows.js'
import {
  anyOf,
  anyOutpoint,
  type Filter,
  type Row,
  type RowWriter,
  SPENDS,
  type Table,
} from '../rows/rows.js'
import { Scores } from './admission-tables.js'
import { ListingChanges, recenciesOf } from './listings.js'

export type Spends = (typeof SPENDS)[number]

/** The column `kind` of `graph_backlog`. */
export type BacklogKind = 'judge' | 'decide' | 'settle' | 'keep' | 'carry' | 'link' | 'claim'

/** Of all pending transactions; `bytes` are those of the raw transactions. Those that wait are counted apart. */
export interface PendingTotal {
  transactions: number
  bytes: number
  waiting: number
  waitingBytes: number
}

export interface TransactionTablesOptions {
  rows: RowWriter
  lookups: Lookups
  /** Whether the store derives the admissions of all stored transactions. */
  derives: boolean
}

const SPEND = ['txid', 'vout', 'spender', 'satoshis']

/** How much one write caches: spends, and bytes of raw transactions. Enough for one large transaction. */
const MAX_SPENDS = 50_000
const MAX_BYTES = 16 * 1024 * 1024

/** Inserts into these tables may change what is cached of raw transactions, and of spends. */
const OF_TRANSACTIONS = new Set<Table>(['graph_transactions', 'graph_pieces'])
const OF_SPENDS = new Set<Table>(SPENDS)

/**
 * The statements on transactions that a write is made of. If nothing else is said, they cover active and inactive
 * transactions, and results come in no order. Spends and raw transactions are cached: a write reads each several times, to
 * judge it, to resolve its outputs and to keep its parents.
 */
export abstract class TransactionTables {
  /** What the write changes in lists. */
  readonly listings: ListingChanges
  readonly scores: Scores
  protected readonly rows: RowWriter
  private readonly lookups: Lookups
  private readonly conflicts: ConflictLookups
  private readonly spends = new LRUCache<string, SpendRecord[]>({
    maxSize: MAX_SPENDS,
    sizeCalculation: ({ length }) => length + 1,
  })
  private readonly transactions = new LRUCache<string, TransactionRecord>({
    maxSize: MAX_BYTES,
    sizeCalculation: ({ raw }) => raw.length,
  })

  constructor({ rows, lookups, derives }: TransactionTablesOptions) {
    this.rows = rows
    this.listings = new ListingChanges(rows)
    this.scores = new Scores(rows)
    this.lookups = lookups
    this.conflicts = { lookups, derives }
  }

  /** Those of the transactions that spend an admitted output. */
  abstract spendingAdmitted(txids: string[]): Promise<string[]>
  /**
   * Those of the transactions that need a decision: inactive and rejected ones, children of inactive ones, and double spends. May include
   * others.
   */
  abstract questionable(txids: string[]): Promise<string[]>
  /** Counts a reorganisation, unless the engine does so by itself. */
  abstract countReorg(): Promise<void>

  /** Inserts the rows whose key is not stored yet. */
  async insertNew(table: Table, rows: RecordRow[]): Promise<void> {
    if (rows.length > 0 && OF_TRANSACTIONS.has(table)) this.transactions.clear()
    if (rows.length > 0 && OF_SPENDS.has(table)) this.spends.clear()
    await this.rows.insertNew(table, rows)
  }

  /** Caches the spends of new transactions, of which none was stored before. */
  cacheSpends(txids: string[], spends: SpendRecord[]): void {
    const byTxid = groupBy(spends, ({ spender }) => spender)
    for (const txid of txids) this.spends.set(txid, byTxid.get(txid) ?? [])
  }

  /** Those of the owners that have chunks, as hex. The owner of a raw transaction is its txid. */
  held(owners: string[]): Promise<Set<string>> {
    return heldChunks(this.rows, owners)
  }

  async deleteChunks(owners: Buffer[]): Promise<void> {
    this.clear()
    for (const owner of owners) await this.rows.delete('graph_pieces', { owner })
  }

  async get(txid: string): Promise<TransactionRecord | undefined> {
    const found = this.transactions.get(txid) ?? (await transactionRecord(this.rows, this.lookups, txid))
    if (found !== undefined) this.transactions.set(txid, found)
    return found
  }

  raw(txid: string): Promise<RawTransaction | undefined> {
    return rawTransaction(this.rows, this.lookups, txid)
  }

  async blocks(txids: string[]): Promise<Map<string, string>> {
    const fields = ['txid', 'height', 'merkle_root']
    const rows = await inParts(txids, (part) =>
      this.rows.all('graph_transactions', { txid: anyOf(part), height: { $ne: null } }, { fields }),
    )
    return new Map(
      rows.map(({ txid, height, merkle_root }) => [
        hexOf(txid),
        blockText({ height: Number(height), root: hexOf(merkle_root) }),
      ]),
    )
  }

  /** The statuses of those that are known. */
  statuses(txids: string[]): Promise<TransactionStatus[]> {
    return statuses(this.rows, txids)
  }

  /** See `recencyOf`, by txid. */
  recenciesOf(txids: string[]): Promise<Map<string, number>> {
    return recenciesOf(this.rows, txids)
  }

  /** The transactions that spend from these. */
  childrenOf(txids: string[]): Promise<string[]> {
    return childrenOf(this.rows, txids)
  }

  /** The other transactions that spend the same outpoints. */
  conflictsOf(spends: SpendRecord[]): Promise<string[]> {
    return conflictsOf(this.rows, spends)
  }

  spendsOf(outpoints: Outpoint[]): Promise<SpendRecord[]> {
    return spendsOf(this.rows, outpoints)
  }

  /** The spends of one transaction, with the values that are known. */
  async spendsBy(spender: string): Promise<SpendRecord[]> {
    const known = this.spends.get(spender)
    if (known !== undefined) return known
    const rows = await this.rows.all(SPENDS, { spender: hashColumn(spender) }, { fields: SPEND })
    // For a large transaction, reading the rows and using them each take long.
    await yieldBetweenStatements()
    const found = rows.map(spendOf)
    this.spends.set(spender, found)
    return found
  }

  /** The outputs of transactions with a spend that lacks their value. */
  async unvaluedOutputs(txids: string[]): Promise<Outpoint[]> {
    const fields = ['txid', 'vout']
    const rows = await inParts(txids, (part) =>
      this.rows.all(SPENDS, { txid: anyOf(part), satoshis: null }, { fields }),
    )
    return unique(rows.map(outpointOf), formatOutpoint)
  }

  /** Sets the value of a transaction's outputs in all their spends. */
  async setSpentValue(spent: { txid: string; vouts: number[]; satoshis: number }): Promise<void> {
    this.clear()
    const { txid, vouts, satoshis } = spent
    await eachPart(vouts, async (part) => {
      for (const table of SPENDS)
        await this.rows.update(table, { txid: hashColumn(txid), vout: { $in: part } }, { satoshis })
    })
  }

  admissionsAmong(outpoints: Outpoint[]): Promise<AdmissionRecord[]> {
    return admissionsAmong(this.rows, outpoints)
  }

  /** The admissions of all outputs of these transactions. */
  async admissionsOf(txids: string[]): Promise<AdmissionRecord[]> {
    return await inParts(txids, async (part) => {
      const rows = await this.rows.all('graph_admissions', { txid: anyOf(part) })
      // A large transaction may have thousands of outputs.
      await yieldBetweenStatements()
      return rows.map(admissionOf)
    })
  }

  /** See `TransactionsReader.reasonAgainst`. */
  reasonAgainst(txid: string): Promise<Reason | undefined> {
    return reasonIn(this.rows, this.conflicts, txid)
  }

  /** See `SightingsStore.of`. */
  sightingsOf(txids: string[]): Promise<Map<string, Sighting>> {
    return sightingsIn(this.rows, txids)
  }

  async setSighting({ txid, status }: SightingRecord): Promise<void> {
    await this.rows.put('graph_sightings', { txid: hashColumn(txid), seen: status === 'seen' })
  }

  /**
   * For one decision: it caches what it learns about nodes.
   *
   * @param judged Transactions that this write has judged.
   */
  rankedView(judged?: ReadonlySet<string>): RankedView {
    return {
      ...conflictView(this.rows, this.conflicts, judged),
      heightOf: (txid) => heightOf(this.rows, txid),
      sightingOf: async (txid) => (await this.sightingsOf([txid])).get(txid),
      setRank: ({ txid, mined, seen, rejected, insertionOrder }) => {
        this.listings.move([txid])
        return this.update(txid, { mined: mined ?? null, seen, rejected, arrival: insertionOrder })
      },
    }
  }

  /** The last place in insertion order that is taken; 0 if there is none. */
  async lastInsertionOrder(): Promise<number> {
    // The bound lets engines seek the end of the index.
    const any = { arrival: { $gte: Number.MIN_SAFE_INTEGER } }
    const last = await this.rows.first('graph_transactions', any, {
      sort: { arrival: -1 },
      fields: ['arrival'],
    })
    return Number(last?.arrival ?? 0)
  }

  /** Those of the transactions that are inactive. */
  async inactiveAmong(txids: string[]): Promise<Set<string>> {
    const rows = await inParts([...new Set(txids)], (part) =>
      this.rows.all('graph_transactions', { txid: anyOf(part), silent: true }, { fields: ['txid'] }),
    )
    return new Set(rows.map(({ txid }) => hexOf(txid)))
  }

  async setInactive(txids: string[], isInactive: boolean): Promise<void> {
    await eachPart(txids, (part) =>
      this.rows.update('graph_transactions', { txid: anyOf(part) }, { silent: isInactive }),
    )
  }

  async setProof(txid: string, proof: NonNullable<TransactionRecord['proof']>): Promise<void> {
    this.clear()
    this.listings.move([txid])
    await this.update(txid, proofColumns(proof))
  }

  /** Deletes the proofs that lead to a block. Returns the transactions that had one. */
  async takeProofs({ height, root }: Block): Promise<string[]> {
    this.clear()
    const inBlock = { height, merkle_root: hashColumn(root) }
    const rows = await this.rows.all('graph_transactions', inBlock, { fields: ['txid'] })
    await this.rows.update('graph_transactions', inBlock, proofColumns(undefined))
    const txids = rows.map(({ txid }) => hexOf(txid))
    await eachPart(txids, (part) =>
      this.rows.update('graph_pending', { txid: anyOf(part) }, { proven: false }),
    )
    this.listings.move(txids)
    return txids
  }

  /** Deletes and returns up to `limit` spends of spenders. */
  async takeSpends(taken: { from: Spends; spenders: string[]; limit: number }): Promise<SpendRecord[]> {
    this.clear()
    const { from, spenders, limit } = taken
    const rows = await this.rows.all(from, { spender: anyOf(spenders) }, { fields: SPEND, limit })
    const spends = rows.map(spendOf)
    for (const [spender, theirs] of groupBy(spends, (spend) => spend.spender))
      await this.deleteOutpoints(
        from,
        theirs.map(({ outpoint }) => outpoint),
        { spender: hashColumn(spender) },
      )
    return spends
  }

  /**
   * The output records of active transactions: up to `limit` outputs, and all nodes and names. `merged` are the outputs that
   * keep a MAP snapshot.
   */
  async factsOf(txids: string[], limit: number): Promise<OutputFacts & { merged: Outpoint[] }> {
    const theirs = { txid: anyOf(txids) }
    const outputs = await this.rows.all('graph_outputs', theirs, {
      fields: [...OUTPUT, 'merged_length'],
      limit,
    })
    const nodes = await this.rows.all('graph_nodes', theirs)
    const names = await this.rows.all('graph_names', theirs)
    return {
      outputs: outputs.map(outputOf),
      nodes: nodes.map((row) => ({ outpoint: outpointOf(row), domain: row.domain })),
      names: names.map((row) => ({ outpoint: outpointOf(row), name: row.name })),
      merged: outputs.filter(({ merged_length }) => merged_length !== null).map(outpointOf),
    }
  }

  async deleteFacts(outpoints: Outpoint[]): Promise<void> {
    for (const table of ['graph_outputs', 'graph_nodes', 'graph_names'] as const)
      await this.deleteOutpoints(table, outpoints)
  }

  /** Deletes and returns up to `limit` rows made by `inactiveFactRows`. */
  async takeInactiveFacts(txids: string[], limit: number): Promise<{ kind: string; body: unknown }[]> {
    const fields = ['txid', 'vout', 'kind', 'body']
    const rows = await this.rows.all('graph_silent_facts', { txid: anyOf(txids) }, { fields, limit })
    for (const [kind, facts] of groupBy(rows, (row: Row) => String(row.kind)))
      await this.deleteOutpoints('graph_silent_facts', facts.map(outpointOf), { kind })
    return rows.map(({ kind, body }) => ({ kind, body }))
  }

  /** Those of the transactions that are pending. */
  async pendingAmong(txids: string[]): Promise<PendingRecord[]> {
    const rows = await inParts(txids, (part) => this.rows.all('graph_pending', { txid: anyOf(part) }))
    return rows.map(pendingOf)
  }

  /** The pending transactions to delete first: unproven before proven, in insertion order. */
  async firstPending(limit: number): Promise<PendingRecord[]> {
    const sort = { proven: 1, arrival: 1, txid: 1 } as const
    return (await this.rows.all('graph_pending', { waiting: false }, { sort, limit })).map(pendingOf)
  }

  /** The transactions that wait because they, or what came with them, lost a conflict: in insertion order. */
  async waiting(): Promise<PendingRecord[]> {
    const sort = { proven: 1, arrival: 1, txid: 1 } as const
    const rows = await this.rows.all('graph_pending', { waiting: true }, { sort })
    return rows.map(pendingOf).sort((a, b) => a.insertionOrder - b.insertionOrder)
  }

  /** Counts transactions as pending that have waited. */
  async stopWaiting(txids: string[]): Promise<void> {
    const ended = { waiting: false, client: null }
    await eachPart(txids, (part) => this.rows.update('graph_pending', { txid: anyOf(part) }, ended))
  }

  async setPendingProven(txid: string): Promise<void> {
    await this.rows.update('graph_pending', { txid: hashColumn(txid) }, { proven: true })
  }

  async deletePending(txids: string[]): Promise<void> {
    await eachPart(txids, (part) => this.rows.delete('graph_pending', { txid: anyOf(part) }))
  }

  async pendingTotal(): Promise<PendingTotal> {
    const row = await this.rows.first('graph_settings', PENDING, { fields: ['value'] })
    const none = { transactions: 0, bytes: 0, waiting: 0, waitingBytes: 0 }
    return row === undefined ? none : { ...none, ...JSON.parse(String(row.value)) }
  }

  async setPendingTotal(total: PendingTotal): Promise<void> {
    if (total.transactions + total.waiting === 0) await this.rows.delete('graph_settings', PENDING)
    else await this.rows.put('graph_settings', { ...PENDING, value: JSON.stringify(total) })
  }

  /** Deletes a transaction that has no output records: its bytes, its proof and its spends. */
  async deleteTransaction(txid: string): Promise<void> {
    const hash = hashColumn(txid)
    await this.deleteChunks([hash])
    for (const table of SPENDS) await this.rows.delete(table, { spender: hash })
    await this.rows.delete('graph_transactions', { txid: hash })
    this.listings.count({ transactions: -1 })
  }

  /** Deletes the output records of an inactive transaction, its admissions, and the blobs that nothing else needs. */
  async deleteInactiveFacts(txid: string): Promise<void> {
    const own = { txid: hashColumn(txid) }
    const fields = ['txid', 'vout', 'kind', 'content_sha256']
    const facts = await this.rows.all('graph_silent_facts', own, { fields })
    for (const table of ['graph_silent_facts', 'graph_admissions', 'graph_applied'] as const)
      await this.rows.delete(table, own)
    const outputs = facts.filter(({ kind }) => kind === 'output')
    const maps = outputs.map((row) => mapOwner({ outpoint: outpointOf(row), merged: false }))
    const bodies = new Set(
      outputs.flatMap(({ content_sha256 }) => (content_sha256 === null ? [] : [hexOf(content_sha256)])),
    )
    const unused: Buffer[] = []
    for (const body of bodies) if (!(await this.isOwner(hashColumn(body)))) unused.push(hashColumn(body))
    await this.deleteChunks([...maps, ...unused])
  }

  /** Whether the chunks of an owner are the body of an output, or a raw transaction. */
  private async isOwner(owner: Buffer): Promise<boolean> {
    await yieldBetweenStatements()
    for (const table of ['graph_outputs', 'graph_silent_facts'] as const)
      if (await this.rows.first(table, { content_sha256: owner }, { fields: ['txid'] })) return true
    return (await this.rows.first('graph_transactions', { txid: owner }, { fields: ['txid'] })) !== undefined
  }

  /** Deletes and returns up to `limit` items of the backlog. */
  async takeBacklog(kind: BacklogKind, limit: number): Promise<Outpoint[]> {
    const rows = await this.rows.all('graph_backlog', { kind }, { fields: ['txid', 'vout'], limit })
    const outpoints = rows.map(outpointOf)
    await this.deleteOutpoints('graph_backlog', outpoints, { kind })
    return outpoints
  }

  async hasBacklog(kind: BacklogKind): Promise<boolean> {
    return (await this.rows.first('graph_backlog', { kind }, { fields: ['kind'] })) !== undefined
  }

  /** Blocks something, or changes the reason if it is blocked already. Returns the stored record. */
  async setBlocked(record: BlockedRecord): Promise<BlockedRecord> {
    const { kind, value, reason } = record
    await this.rows.insertNew('graph_blocked', [blockedRow(record)])
    await this.rows.update('graph_blocked', { kind, value }, { reason })
    return blockedOf(await this.rows.first('graph_blocked', { kind, value }))
  }

  /** Returns whether it was blocked. */
  async deleteBlocked({ kind, value }: BlockedSubject): Promise<boolean> {
    const wasBlocked = (await this.rows.first('graph_blocked', { kind, value })) !== undefined
    await this.rows.delete('graph_blocked', { kind, value })
    return wasBlocked
  }

  private clear(): void {
    this.spends.clear()
    this.transactions.clear()
  }

  private async update(txid: string, fields: RecordRow): Promise<void> {
    await this.rows.update('graph_transactions', { txid: hashColumn(txid) }, fields)
  }

  private async deleteOutpoints(table: Table, outpoints: Outpoint[], others: Filter = {}): Promise<void> {
    await eachPart(outpoints, (part) => this.rows.delete(table, { ...others, ...anyOutpoint(part) }))
  }
}

/** The setting that holds a {@link PendingTotal}. */
const PENDING = { name: 'pending' }

/** Runs a statement for any number of items, {@link ROWS_A_STATEMENT} at a time, and yields in between. */
export async function eachPart<Item>(items: Item[], run: (part: Item[]) => Promise<void>): Promise<void> {
  for (const part of parts(items, ROWS_A_STATEMENT)) {
    await run(part)
    await yieldBetweenStatements()
  }
}
