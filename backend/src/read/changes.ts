import type { Sql } from '../facts/connection.js'
import type { Dependency } from '../graph/dependencies.js'
import { EVERYTHING } from '../index/journal.js'

/** How many changed keys are read: whoever is further behind drops everything. */
const MAX_KEYS = 10_000
/** How many commits are read at once, each of which may have changed a thousand keys. */
const PAGE = 100

/** What commits have changed. */
export interface ChangesRead {
  /** The last of these commits: where the next reading begins. */
  cursor: number
  /** Undefined if everything may have changed. */
  keys: Dependency[] | undefined
}

// The one at the cursor shows that these commits are those that follow it.
const CHANGES = 'select id, keys from changes where id >= ? order by id limit ?'
const LAST = 'select max(id) as last from changes'

/** What was changed after a commit, by its place in the table of changes. */
export function changesAfter(sql: Sql, cursor: number): ChangesRead {
  const everything = (): ChangesRead => ({ cursor: sql.get(LAST)?.last ?? 0, keys: undefined })
  const keys: Dependency[] = []
  for (let next = cursor; keys.length <= MAX_KEYS; ) {
    const rows = sql.all(CHANGES, next, PAGE)
    if (next === cursor || rows.length > 0) if (rows[0]?.id !== next) return everything()
    for (const row of rows) {
      if (row.id === cursor) continue
      if (row.keys === EVERYTHING) return everything()
      for (const key of JSON.parse(row.keys)) keys.push(key)
    }
    next = (rows.at(-1)?.id ?? next - 1) + 1
    if (rows.length < PAGE) return { cursor: next - 1, keys }
  }
  return everything()
}
