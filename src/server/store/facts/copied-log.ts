import { randomBytes } from 'node:crypto'
import type { Sql } from '../../../../backend/src/facts/connection.js'
import type { LocalLog } from '../../../../backend/src/facts/local-log.js'
import type { Fact } from '../../../../backend/src/facts/log.js'
import {
  isPurged,
  latestOf,
  nextOf,
  register,
  SCORE_MARGIN,
} from '../../../../backend/src/facts/registers.js'
import { DamagedError } from '../../../../backend/src/graph/errors.js'
import { toHex } from '../../../../backend/src/protocol/bytes.js'
import { MaintenanceError } from './maintenance-error.js'
import { FACT_NAMES, isSound } from './verify-fact.js'

export interface CopyOptions {
  /** A folder, or the URL of a database (`logPlaceOf`). */
  from: string
  to: string
  signal: AbortSignal
  onProgress: (copied: { facts: number; share: number }) => void
}

/** What was copied: how many facts, and the id that the copy has. */
export interface Copied {
  facts: number
  id: string
}

/** In the copy, until it is complete: the log that it is made from. */
const COPIED_FROM = 'copied from'

/** @throws MaintenanceError if a folder holds what a gateway has of a log that others share. */
export function assertOwn(folder: string, sql: Sql): void {
  if (sql.get("select 1 as one from log_meta where name = 'place'") !== undefined)
    throw new MaintenanceError(
      `${folder} is what a gateway keeps of the log in a database: name that database`,
    )
}

/** @throws DamagedError if a fact is not what its key says. */
export function assertSound(fact: Fact, log: LocalLog): void {
  if (!isSound(fact) && !isPurged(log, fact.key))
    throw new DamagedError(toHex(fact.key), FACT_NAMES[fact.kind])
}

/** Makes a copy a log of its own. @returns Its id. */
export function endCopy(sql: Sql): string {
  const id = randomBytes(16).toString('hex')
  sql.run("update log_meta set value = ? where name = 'id'", id)
  sql.run('delete from log_meta where name = ?', COPIED_FROM)
  return id
}

/** Gives the next facts higher scores than any that the log, or one that it was copied from, can have given by now. */
export function raiseScores(log: LocalLog): void {
  const raised = nextOf(log, register.setting('base'), raisedBase(scoresOf(log)))
  if (raised !== undefined) log.insert(raised)
}

/** What the scores of a log are counted from, in milliseconds since 1970, and how far they have come. */
export function scoresOf(log: LocalLog): { base: number; last: number } {
  return { base: Number(latestOf(log, register.setting('base'))?.value ?? 0), last: log.last }
}

/** What scores are to be counted from so that they are higher than those that a log can have given. */
export function raisedBase({ base, last }: { base: number; last: number }): string {
  // A fact takes a millisecond of them, one with many outputs a few more.
  return String(Math.max(base + last + SCORE_MARGIN, Date.now()))
}

/** Another value after each `purge` and `prune`. */
export function cleanedAt(sql: Sql): unknown {
  return sql.get("select value from log_meta where name = 'cleaned'")?.value
}

/** Whether a file holds part of a copy of a log. @throws MaintenanceError if it holds part of one of another log. */
export function isBegun(sql: Sql, sourceId: string): boolean {
  if (sql.get("select 1 from sqlite_master where name = 'log_meta'") === undefined) return false
  const from = sql.get('select value from log_meta where name = ?', COPIED_FROM)?.value
  if (from !== sourceId)
    throw new MaintenanceError('the folder holds part of a copy of another log: empty it')
  return true
}

export function markBegun(sql: Sql, sourceId: string): void {
  sql.run('insert into log_meta values (?, ?)', COPIED_FROM, sourceId)
}
