import type { Row } from '../facts/connection.js'
import { latestOf, register } from '../facts/registers.js'
import type { Interactions, SightingsStore } from '../graph/graph-store.js'
import type { HeldSubmission, HeldSubmissions, Settings } from '../graph/host-store.js'
import { blobOf, hexOf, type Reader } from './reader.js'

/** What stands beside the facts, and is derived from nothing: settings, progress, what waits. */

const STATE = 'select value from log.state where name = ?'

/** A setting that derivation depends on is a register, any other is state. Read from the log: the index may be behind it. */
export function settingsIn(reader: Reader): Pick<Settings, 'get'> {
  return {
    get: async (name) =>
      reader.single((sql, log) => {
        const registered = latestOf(log, register.setting(name))
        return registered === undefined ? sql.get(STATE, name)?.value : String(registered.value)
      }),
  }
}

const SINCE = 'select since from log.interaction where host = ? and topic = ?'

export function interactionsIn(reader: Reader): Pick<Interactions, 'last'> {
  return {
    last: async (host, topic) => Number(reader.single((sql) => sql.get(SINCE, host, topic))?.since ?? 0),
  }
}

const SAID = 'select said from tx where txid = ? and said is not null'

export function sightingsIn(reader: Reader): Pick<SightingsStore, 'of'> {
  return {
    of: (txids) =>
      new Map(
        reader.all([...new Set(txids)], (sql, txid): [string, 'seen' | 'rejected'][] => {
          const row = sql.get(SAID, blobOf(txid))
          return row === undefined ? [] : [[txid, row.said === 1 ? 'seen' : 'rejected']]
        }),
      ),
  }
}

const HELD = 'select txid, lock_height, lock_time, beef from log.held'
const HELD_UNTIL = `${HELD} where lock_height <= ? and lock_time < ? order by lock_height, lock_time, txid limit ?`

export function heldIn(reader: Reader): Pick<HeldSubmissions, 'held' | 'heldUntil'> {
  return {
    held: async (txid) => {
      const row = reader.single((sql) => sql.get(`${HELD} where txid = ?`, blobOf(txid)))
      return row && heldOf(row)
    },
    heldUntil: async ({ height, time }, limit) =>
      reader.single((sql) => sql.all(HELD_UNTIL, height, time, limit)).map(heldOf),
  }
}

function heldOf({ txid, lock_height, lock_time, beef }: Row): HeldSubmission {
  return { txid: hexOf(txid), lock: { height: lock_height, time: lock_time }, beef }
}
