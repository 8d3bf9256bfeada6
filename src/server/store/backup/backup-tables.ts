import { CodedError } from '../../../../backend/src/protocol/coded-error.js'
import type { Row, RowReader } from '../../../../backend/src/storage/rows/rows.js'

export type BackupValue = string | number | boolean | Uint8Array | null
export type BackupRow = Record<string, BackupValue>

/** The tables of a store as a backup reads them: one consistent snapshot, whatever is written meanwhile. */
export interface SavedTables {
  /** The migrations that made them. */
  schema: string[]
  /** A setting in the store; undefined if it was never set. */
  setting(name: string): Promise<string | undefined>
  /** About how many bytes they have; undefined if the engine does not say. */
  size(): Promise<number | undefined>
  rows(): AsyncIterable<{ table: string; row: BackupRow }>
  /** Reads of the same snapshot. */
  reader: RowReader
  /** At most `limit` chunks of blobs after one of them, or from the first on, in the order of their keys. */
  chunksAfter(last: { owner: Buffer; position: number } | undefined, limit: number): Promise<Row[]>
}

export interface LoadedTables {
  /** @throws BackupError for an unknown table or column. */
  load(table: string, rows: BackupRow[]): Promise<void>
}

/** A setting of a store whose restore has begun and is not complete. */
export const RESTORE_MARK = 'restore'

/** Settings that concern one database only. */
const OWN_SETTINGS = new Set<unknown>(['writes', RESTORE_MARK])

/** Block headers are fetched again, and checked, by the host that a backup is restored to. */
export function isSavedTable(table: string): boolean {
  return table !== 'graph_headers'
}

export function isSaved(table: string, row: BackupRow): boolean {
  return table !== 'graph_settings' || !OWN_SETTINGS.has(row.name)
}

/** Why a backup cannot be written or restored, in one line; partial work has been undone. */
export class BackupError extends CodedError {
  override readonly name = 'BackupError'
  readonly code = 'FAILED'
}
