import type { Outpoint } from '../../protocol/outpoint.js'
import { hashColumn, type Lineage } from './columns.js'

/**
 * The port to a database: rows of tables, or documents of collections. What one condition on one table can say is said in
 * these terms, once for all engines; each engine adds the statements that it has a better way for (`read/lookups.ts`,
 * `write/graph-tables.ts`).
 */

/** The tables, which are collections of MongoDB, with their primary keys. */
export const KEYS = {
  graph_transactions: ['txid'],
  graph_pieces: ['owner', 'position'],
  graph_spends: ['txid', 'vout', 'spender'],
  graph_silent_spends: ['txid', 'vout', 'spender'],
  graph_silent_facts: ['txid', 'vout', 'kind'],
  graph_outputs: ['txid', 'vout'],
  graph_traits: ['trait', 'lineage_txid', 'lineage_vout'],
  graph_nodes: ['txid', 'vout'],
  graph_names: ['name', 'txid', 'vout'],
  graph_admissions: ['txid', 'vout', 'topic'],
  graph_applied: ['txid', 'topic'],
  graph_blocked: ['kind', 'value'],
  graph_pending: ['txid'],
  graph_sightings: ['txid'],
  graph_backlog: ['kind', 'txid', 'vout'],
  graph_held: ['txid'],
  graph_ancestors: ['txid', 'vout'],
  graph_hook_notes: ['subject'],
  graph_headers: ['position'],
  graph_interactions: ['host', 'topic'],
  graph_settings: ['name'],
} as const

export type Table = keyof typeof KEYS

/** The spends of active and of inactive transactions. */
export const SPENDS = ['graph_spends', 'graph_silent_spends'] as const

/** The value of a field. Txids and hashes are Buffers; a missing value is null. */
export type FieldValue = string | number | boolean | Buffer | null

/** Conditions on a field, beside equality. Null is neither greater nor less than anything. */
export interface Comparison {
  $in?: FieldValue[]
  $ne?: FieldValue
  $gt?: FieldValue
  $gte?: FieldValue
  $lt?: FieldValue
  $lte?: FieldValue
}

/** What MongoDB has under these names. */
export interface Filter {
  $or?: Filter[]
  $and?: Filter[]
  [field: string]: FieldValue | Comparison | Filter[] | undefined
}

export interface FindOptions {
  /** By its keys in order: 1 ascending, -1 descending. */
  sort?: Record<string, 1 | -1>
  limit?: number
  /** The fields to return; all by default. */
  fields?: readonly string[]
}

/** A row with the fields that were asked for. */
// biome-ignore lint/suspicious/noExplicitAny: see above; every use converts fields to records immediately.
export type Row = any

/** Runs reads. Drivers differ in how they return numbers, booleans and bytes: `columns.ts` converts them. */
export interface RowReader {
  /** @param table With several tables, the rows of each. */
  all(table: Table | readonly Table[], filter: Filter, options?: FindOptions): Promise<Row[]>
  /** The first row; undefined if there is none. */
  first(table: Table, filter: Filter, options?: Omit<FindOptions, 'limit'>): Promise<Row | undefined>
  /** Stops at the limit. */
  count(table: Table, filter: Filter, limit?: number): Promise<number>
}

/** Runs the statements of a write, and reads what it has written so far. */
export interface RowWriter extends RowReader {
  /** Inserts the rows whose key is not stored yet. All have the same fields. */
  insertNew(table: Table, rows: object[]): Promise<void>
  /** Inserts a row, or changes the one with its key. */
  put(table: Table, row: Row): Promise<void>
  update(table: Table, filter: Filter, fields: Record<string, unknown>): Promise<void>
  delete(table: Table, filter: Filter): Promise<void>
}

/** A database that is read, and written in transactions. */
export interface RowDatabase extends RowReader {
  /** Makes all changes of the work or none; none if it throws. No other write runs meanwhile. */
  write<Result>(work: (rows: RowWriter) => Promise<Result>): Promise<Result>
}

export function isComparison(wanted: Filter[string]): wanted is Comparison {
  return (
    typeof wanted === 'object' && wanted !== null && !ArrayBuffer.isView(wanted) && !Array.isArray(wanted)
  )
}

/** A filter that matches any of the outpoints. Those of one transaction become one range, as there may be thousands. */
export function anyOutpoint(
  outpoints: readonly Outpoint[],
  [txid, vout]: readonly [string, string] = ['txid', 'vout'],
): Filter {
  const [first] = outpoints
  if (first !== undefined && outpoints.every((outpoint) => outpoint.txid === first.txid))
    return {
      [txid]: hashColumn(first.txid),
      [vout]: outpoints.length === 1 ? first.vout : { $in: outpoints.map((outpoint) => outpoint.vout) },
    }
  return {
    $or: outpoints.map((outpoint) => ({ [txid]: hashColumn(outpoint.txid), [vout]: outpoint.vout })),
  }
}

/** A filter that matches the rows of any of the transactions. */
export function anyOf(txids: string[]): Comparison {
  return { $in: txids.map(hashColumn) }
}

/** The outputs of a lineage. */
export function inLineage([lineage_txid, lineage_vout]: Lineage): Filter {
  return { lineage_txid, lineage_vout }
}
