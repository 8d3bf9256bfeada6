import type { Row, Sql } from '../facts/connection.js'
import { type AncestorEntry, type AncestorQueue, WHOLE_TRANSACTION } from '../graph/ancestor-queue.js'
import { TimeSlice } from '../graph/yield-to-event-loop.js'
import { formatOutpoint, type Outpoint } from '../protocol/outpoint.js'
import { blobOf, outpointOf, type Reader } from './reader.js'

/** Answers from the index, once it can be read. */
type Read = <Answer>(find: (sql: Sql) => Answer) => Promise<Answer>

/**
 * The ordinals whose origin is unknown: the index has them, and the state beside the log how far each search has come. An entry
 * without a row there was never tried.
 */
export function ancestorsIn(reader: Reader, read: Read): Omit<AncestorQueue, 'postpone'> {
  return {
    due: (query) => read((sql) => due(sql, query)),
    nextDue: () =>
      read((sql) => (sql.get(UNTRIED_FIRST, 1) === undefined ? (sql.get(NEXT_DUE)?.due ?? undefined) : 0)),
    count: (limit) =>
      read((sql) => {
        const holes = Number(sql.get(COUNT_HOLES, limit)?.count)
        const entries = Number(sql.get(COUNT_ENTRIES, limit + holes)?.count)
        return { waiting: entries - holes, holes }
      }),
    async isWaiting(outpoint) {
      const entry = await entryOf(read, outpoint)
      return entry !== undefined && entry.hole !== 1
    },
    isUnplaced: (txid) =>
      reader.answer((sql) => sql.all(OF_TRANSACTION, blobOf(txid))).some(({ hole }) => hole !== 1),
  }
}

/** The entries that share the result of an attempt: see `AncestorQueue.postpone`. */
export async function sharingEntries(
  read: Read,
  { outpoint, previous }: Pick<AncestorEntry, 'outpoint' | 'previous'>,
): Promise<Outpoint[]> {
  const entry = await entryOf(read, outpoint)
  if (entry === undefined) return []
  const first = outpointOf(entry)
  if (previous !== undefined || first.txid !== outpoint.txid) return [first]
  // These entries wait for the same input value.
  const ofTransaction = await read((sql) => sql.all(OF_TRANSACTION, blobOf(first.txid)))
  return ofTransaction.filter(({ ptid }) => ptid === null).map(outpointOf)
}

const COLUMNS = 'tx.txid, missing.vout, hole, due, tries, transactions, bytes'
const STATE = 'log.ancestor as state'
/** Leaves out inactive transactions. */
const WITH_STATE = `from missing cross join tx on tx.id = tid
  left join ${STATE} on state.txid = tx.txid and state.vout = missing.vout where tx.active = 1`
const FROM_STATE = `from ${STATE} cross join tx on tx.txid = state.txid
  cross join missing on missing.tid = tx.id and missing.vout = state.vout where tx.active = 1`

const untried = (direction: string): string =>
  `select ${COLUMNS} ${WITH_STATE} and ifnull(due, 0) = 0 order by missing.seq ${direction} limit ?`
const UNTRIED_FIRST = untried('asc')
const UNTRIED_LAST = untried('desc')
const TRIED = `select ${COLUMNS} ${FROM_STATE} and hole = 0 and due > 0 and due <= ? order by due, place limit ?`
const HOLES = `select ${COLUMNS} ${FROM_STATE} and hole = 1 and due <= ? order by due, place limit ?`
const NEXT_DUE = `select min(due) as due from (
  select * from (select due ${FROM_STATE} and hole = 0 and due > 0 order by due, place limit 1)
  union all select * from (select due ${FROM_STATE} and hole = 1 order by due, place limit 1))`
const COUNT_HOLES = `select count(*) as count from (select 1 ${FROM_STATE} and hole = 1 limit ?)`
const COUNT_ENTRIES = `select count(*) as count from (
  select 1 from missing cross join tx on tx.id = tid where tx.active = 1 limit ?)`
const OF_TRANSACTION = `select ${COLUMNS}, ptid from tx cross join missing on missing.tid = tx.id
  left join out on out.tid = tx.id and out.vout = missing.vout
  left join ${STATE} on state.txid = tx.txid and state.vout = missing.vout where tx.txid = ? and tx.active = 1`
const RECEIVED = `select coin.txid, pvout as vout from tx cross join out on tid = tx.id
  cross join tx as coin on coin.id = ptid where tx.txid = ? and out.vout = ? and lin is null`

function due(sql: Sql, { now, limit }: { now: number; limit: number }): AncestorEntry[] {
  const rows = [
    ...sql.all(UNTRIED_FIRST, limit),
    ...sql.all(UNTRIED_LAST, limit),
    ...sql.all(TRIED, now, limit),
    ...sql.all(HOLES, now, limit),
  ]
  const entries = new Map(rows.map((row) => [formatOutpoint(outpointOf(row)), row]))
  return [...entries.values()].map((row) => {
    const outpoint = outpointOf(row)
    const previous = receivedBy(sql, outpoint)
    return {
      outpoint,
      ...(previous && { previous }),
      hole: row.hole === 1,
      tries: row.tries ?? 0,
      fetched: { transactions: row.transactions ?? 0, bytes: row.bytes ?? 0 },
    }
  })
}

/** The coin that an output without a number received, if it is known. */
function receivedBy(sql: Sql, { txid, vout }: Outpoint): Outpoint | undefined {
  const row = sql.get(RECEIVED, blobOf(txid), vout)
  return row && outpointOf(row)
}

/** How many coins are followed at once. */
const COINS_A_PAGE = 1000

/** The entry for a transaction, or for the lineage of an output: that of its first known coin. */
async function entryOf(read: Read, outpoint: Outpoint): Promise<Row | undefined> {
  const slice = new TimeSlice()
  for (let at: Outpoint | undefined = outpoint; at !== undefined; await slice.yieldIfOver()) {
    const from: Outpoint = at
    const page = await read((sql) => entryBefore(sql, from))
    if ('entry' in page) return page.entry
    at = page.next
  }
  return undefined
}

const ENTRY = `select ${COLUMNS} from tx cross join missing on missing.tid = tx.id
  left join ${STATE} on state.txid = tx.txid and state.vout = missing.vout
  where tx.txid = ? and missing.vout = ? and tx.active = 1`

function entryBefore(sql: Sql, from: Outpoint): { entry: Row } | { next: Outpoint | undefined } {
  let at: Outpoint | undefined = from
  for (let coins = 0; at !== undefined && coins < COINS_A_PAGE; coins++) {
    const entry = sql.get(ENTRY, Buffer.from(at.txid, 'hex'), at.vout)
    if (entry !== undefined) return { entry }
    at = at.vout === WHOLE_TRANSACTION ? undefined : receivedBy(sql, at)
  }
  return { next: at }
}
