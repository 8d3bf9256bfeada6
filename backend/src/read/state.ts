import type { Row } from '../facts/connection.js'
import { latestOf, register } from '../facts/registers.js'
import type { BlockedQuery, BlockedRecord } from '../graph/blocklist.js'
import type { Sighting } from '../graph/conflict-resolution.js'
import type { HeldSubmission } from '../graph/records.js'
import type { ChainPosition } from '../protocol/block-rules.js'
import { blobOf, hexOf, type Reader } from './reader.js'

/** What stands beside the facts, and is derived from nothing: settings, progress, what waits, what is blocked. */

const STATE = 'select value from log.state where name = ?'

/** A setting that derivation depends on is a register, any other is state. Read from the log: the index may be behind it. */
export function settingOf(reader: Reader, name: string): string | undefined {
  return reader.single((sql, log) => {
    const registered = latestOf(log, register.setting(name))
    return registered === undefined ? sql.get(STATE, name)?.value : String(registered.value)
  })
}

const SINCE = 'select since from log.interaction where host = ? and topic = ?'

export function interactionSince(reader: Reader, host: string, topic: string): number {
  return Number(reader.single((sql) => sql.get(SINCE, host, topic))?.since ?? 0)
}

const SAID = 'select said from tx where txid = ? and said is not null'

export function sightingsOf(reader: Reader, txids: string[]): Map<string, Sighting> {
  const found = reader.all([...new Set(txids)], (sql, txid): [string, Sighting][] => {
    const row = sql.get(SAID, blobOf(txid))
    return row === undefined ? [] : [[txid, row.said === 1 ? 'seen' : 'rejected']]
  })
  return new Map(found)
}

const HELD = 'select txid, lock_height, lock_time, beef from log.held'
const HELD_UNTIL = `${HELD} where lock_height <= ? and lock_time < ? order by lock_height, lock_time, txid limit ?`

export function heldOf(reader: Reader, txid: string): HeldSubmission | undefined {
  const row = reader.single((sql) => sql.get(`${HELD} where txid = ?`, blobOf(txid)))
  return row && submissionIn(row)
}

export function heldUntil(reader: Reader, { height, time }: ChainPosition, limit: number): HeldSubmission[] {
  return reader.single((sql) => sql.all(HELD_UNTIL, height, time, limit)).map(submissionIn)
}

function submissionIn({ txid, lock_height, lock_time, beef }: Row): HeldSubmission {
  return { txid: hexOf(txid), lock: { height: lock_height, time: lock_time }, beef }
}

const BLOCKED = 'select kind, value, reason, since from blocked where blocked = 1'
const BLOCKED_OF_KIND = `${BLOCKED} and kind = ? and value > ? order by value limit ?`
const BLOCKED_AFTER_KIND = `${BLOCKED} and kind > ? order by kind, value limit ?`

export function blockedPage(reader: Reader, { kind, after, limit }: BlockedQuery): BlockedRecord[] {
  return reader.answer((sql) => {
    if (kind !== undefined) {
      if (after !== undefined && kind < after.kind) return []
      return recordsOf(sql.all(BLOCKED_OF_KIND, kind, after?.kind === kind ? after.value : '', limit))
    }
    if (after === undefined) return recordsOf(sql.all(BLOCKED_AFTER_KIND, '', limit))
    const same = sql.all(BLOCKED_OF_KIND, after.kind, after.value, limit)
    return recordsOf([...same, ...sql.all(BLOCKED_AFTER_KIND, after.kind, limit - same.length)])
  })
}

function recordsOf(rows: Row[]): BlockedRecord[] {
  return rows.map(({ kind, value, reason, since }) => ({ kind, value, reason, since }))
}
