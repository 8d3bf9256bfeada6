import type { Row } from './backup-file.js'

/** The tables of a store as a backup reads them: all of one moment, whatever is written meanwhile. */
export interface SavedTables {
  /** The migrations that made them. */
  schema: string[]
  /** A setting that the store keeps; undefined where it was never set. */
  setting(name: string): Promise<string | undefined>
  /** About how many bytes they hold; undefined where the engine does not say. */
  size(): Promise<number | undefined>
  rows(): AsyncIterable<{ table: string; row: Row }>
}

/** The tables of an empty store. */
export interface LoadedTables {
  /** @throws BackupError where a table or a column is not known here. */
  load(table: string, rows: Row[]): Promise<void>
}

/** A setting of a store whose restore has begun and is not complete. */
export const RESTORE_MARK = 'restore'

/** Settings that say something of one database alone. */
const OWN_SETTINGS = new Set<unknown>(['writes', RESTORE_MARK])

/** Whether a row belongs into a backup. */
export function isSaved(table: string, row: Row): boolean {
  return table !== 'graph_settings' || !OWN_SETTINGS.has(row.name)
}

/** Why a backup cannot be written or restored, in one line; what was begun is undone. */
export class BackupError extends Error {
  override readonly name = 'BackupError'
}
