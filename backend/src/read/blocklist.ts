import type { Row, Sql } from '../facts/connection.js'
import { type BlockedQuery, type BlockedRecord, Blocklist } from '../graph/blocklist.js'
import type { Reader } from './reader.js'

const COLUMNS = 'select kind, value, reason, since from blocked where blocked = 1'
const OF_KIND = `${COLUMNS} and kind = ? and value > ? order by value limit ?`
const AFTER_KIND = `${COLUMNS} and kind > ? order by kind, value limit ?`

/** See `BlocklistReader.page`. */
export function blockedPage(reader: Reader, { kind, after, limit }: BlockedQuery): BlockedRecord[] {
  return reader.answer((sql) => {
    if (kind !== undefined) {
      if (after !== undefined && kind < after.kind) return []
      return recordsOf(sql.all(OF_KIND, kind, after?.kind === kind ? after.value : '', limit))
    }
    if (after === undefined) return recordsOf(sql.all(AFTER_KIND, '', limit))
    const same = sql.all(OF_KIND, after.kind, after.value, limit)
    return recordsOf([...same, ...sql.all(AFTER_KIND, after.kind, limit - same.length)])
  })
}

function recordsOf(rows: Row[]): BlockedRecord[] {
  return rows.map(({ kind, value, reason, since }) => ({ kind, value, reason, since }))
}

/** The whole blocklist. */
export function readBlocklist(sql: Sql): Blocklist {
  return new Blocklist(recordsOf(sql.all(COLUMNS)))
}
