import type { Knex } from 'knex'
import {
  type ConflictView,
  type RankedView,
  type TransactionStatus,
  winnerOver,
} from '../../graph/conflict-resolution.js'
import type { SpendRecord } from '../../graph/records.js'
import type { Outpoint } from '../../protocol/outpoint.js'
import { LINEAGES_SAMPLED, MOVED_OUTPUTS_PER_SPEND } from '../read/lineages.js'
import {
  countInParts,
  hashColumn,
  hexOf,
  inParts,
  numberIn,
  type OutpointRow,
  outpointOf,
} from '../rows/columns.js'
import { type ConflictRows, conflictsAmong, conflictsIn } from '../write/double-spends.js'
import { anyOf, anyOutpoint, knexReader, outpointValues, type SqlReader, type SqlValue } from './database.js'

/** The spends of active and of inactive transactions. */
export const SPENDS = ['graph_spends', 'graph_silent_spends'] as const

/** For one decision. @param judged Transactions that this write has judged. */
export function conflictView(
  reader: SqlReader,
  judged: ReadonlySet<string> = new Set(),
  derives = false,
): ConflictView {
  const txids = async (select: (spends: string) => string, txid: string): Promise<string[]> => {
    const rows = await reader.all(both(select), Array(2).fill(hashColumn(txid)))
    return rows.map(({ found }) => hexOf(found))
  }
  return {
    statuses: (wanted) => statuses(reader, wanted),
    parents: (txid) => txids((spends) => `select txid as found from ${spends} where spender = ?`, txid),
    children: (txid) => txids((spends) => `select spender as found from ${spends} where txid = ?`, txid),
    conflicts: conflictsIn(conflictRows(reader, derives), judged),
    async outputs(txid) {
      const row = await reader.first(OUTPUTS, Array(2).fill(hashColumn(txid)))
      return Number(row?.count ?? 0)
    },
  }
}

/** Selects from both tables of spends, each row once. */
export function both(select: (spends: string) => string): string {
  return SPENDS.map(select).join(' union ')
}

/** A condition on a spend: it spends a node. */
const IS_NODE = `(exists (select 1 from graph_nodes as nodes where nodes.txid = own.txid and nodes.vout = own.vout)
  or exists (
    select 1 from graph_silent_facts as facts
    where facts.txid = own.txid and facts.vout = own.vout and facts.kind = 'node'
  ))`

const SHARED = SPENDS.flatMap((own) =>
  SPENDS.map(
    (other) => `select other.spender, ${IS_NODE} as is_node from ${own} as own join ${other} as other
      on other.txid = own.txid and other.vout = own.vout where own.spender = ? and other.spender <> own.spender`,
  ),
).join(' union ')

const HAS_NODE = `select 1 from graph_nodes where txid = ?
  union select 1 from graph_silent_facts where txid = ? and kind = 'node'`
const IS_HELD = 'select 1 from graph_pieces where owner = ? and position = 0'
const WAS_JUDGED = `select 1 from graph_outputs where txid = ?
  union select 1 from graph_names where txid = ? union select 1 from graph_silent_facts where txid = ?`

function conflictRows(reader: SqlReader, derives: boolean): ConflictRows {
  const isThere = async (sql: string, values: SqlValue[]): Promise<boolean> =>
    (await reader.first(sql, values)) !== undefined
  return {
    async sharedWith(txid) {
      const rows = await reader.all(SHARED, Array(4).fill(hashColumn(txid)))
      return rows.map((row) => ({ spender: hexOf(row.spender), isNode: Number(row.is_node) === 1 }))
    },
    hasNode: (txid) => isThere(HAS_NODE, Array(2).fill(hashColumn(txid))),
    wasJudged: (txid) =>
      derives ? isThere(IS_HELD, [hashColumn(txid)]) : isThere(WAS_JUDGED, Array(3).fill(hashColumn(txid))),
  }
}

export async function statuses(reader: SqlReader, txids: string[]): Promise<TransactionStatus[]> {
  const rows = await inParts([...new Set(txids)], (part) =>
    reader.all(
      `select txid, mined, arrival, silent from graph_transactions where txid in (${anyOf(part)})`,
      part.map(hashColumn),
    ),
  )
  return rows.map(({ txid, mined, arrival, silent }) => ({
    txid: hexOf(txid),
    mined: mined === null ? undefined : Number(mined),
    insertionOrder: Number(arrival),
    isInactive: Number(silent) === 1,
  }))
}

const OUTPUTS = `select (select count(*) from graph_outputs where txid = ?)
  + (select count(*) from graph_silent_facts where txid = ?) as count`

/** See `TransactionTables.rankedView`. */
export function rankedView(
  trx: Knex.Transaction,
  judged?: ReadonlySet<string>,
  derives?: boolean,
): RankedView {
  const reader = knexReader(trx)
  return {
    ...conflictView(reader, judged, derives),
    heightOf: (txid) => heightIn(reader, txid),
    async setRank({ txid, mined, insertionOrder }) {
      await trx('graph_transactions')
        .where({ txid: hashColumn(txid) })
        .update({ mined: mined ?? null, arrival: insertionOrder })
    },
  }
}

/** See `TransactionTables.conflictsOf`. */
export async function conflictsOf(reader: SqlReader, spends: SpendRecord[]): Promise<string[]> {
  return await conflictsAmong(spends, (outpoints) => spendsOf(reader, outpoints))
}

/** See `TransactionTables.spendsOf`. */
export async function spendsOf(reader: SqlReader, outpoints: Outpoint[]): Promise<SpendRecord[]> {
  const rows = await inParts(outpoints, (part) => {
    const pairs = outpointValues(part)
    return reader.all(
      both((table) => `select txid, vout, spender from ${table} where ${anyOutpoint(part)}`),
      [...pairs, ...pairs],
    )
  })
  return rows.map(spendOf)
}

/** A spend, with its value if that was read and is known. */
export function spendOf(row: OutpointRow & { spender: unknown; satoshis?: unknown }): SpendRecord {
  const satoshis = numberIn(row.satoshis)
  return {
    outpoint: outpointOf(row),
    spender: hexOf(row.spender),
    ...(satoshis !== undefined && { satoshis }),
  }
}

/** See `TransactionTables.childrenOf`. */
export async function childrenOf(reader: SqlReader, txids: string[]): Promise<string[]> {
  const rows = await inParts(txids, (part) => {
    const hashes = part.map(hashColumn)
    return reader.all(
      both((table) => `select spender from ${table} where txid in (${anyOf(part)})`),
      [...hashes, ...hashes],
    )
  })
  return [...new Set(rows.map(({ spender }) => hexOf(spender)))]
}

/** See `TransactionsReader.winnerOver`. */
export async function winnerIn(
  reader: SqlReader,
  txid: string,
  derives?: boolean,
): Promise<string | undefined> {
  return await winnerOver(txid, conflictView(reader, new Set(), derives))
}

/** See `Backlog.workBehind`. */
export async function workBehind(
  reader: SqlReader,
  { txids, limit }: { txids: string[]; limit: number },
): Promise<number> {
  return await countInParts(txids, limit, async (part) => {
    const row = await reader.first(
      `select count(*) as count from (
         select 1 from graph_spends as behind
         where behind.spender in (select spender from graph_spends where txid in (${anyOf(part)})) limit ?
       ) as found`,
      [...part.map(hashColumn), limit],
    )
    const moved = await reader.first(
      `select sum(last) as steps from (
         select (
           select max(step) from graph_outputs as other
           where other.lineage_txid = head.lineage_txid and other.lineage_vout = head.lineage_vout
         ) as last
         from graph_outputs as head where head.previous_txid in (${anyOf(part)}) and head.step = 0 limit ?
       ) as found`,
      [...part.map(hashColumn), LINEAGES_SAMPLED],
    )
    return Number(row?.count ?? 0) + Math.floor(Number(moved?.steps ?? 0) / MOVED_OUTPUTS_PER_SPEND)
  })
}

/** See `TransactionsReader.heightOf`. */
export async function heightIn(reader: SqlReader, txid: string): Promise<number | undefined> {
  const row = await reader.first(
    'select height from graph_transactions where txid = ? and height is not null',
    [hashColumn(txid)],
  )
  return row && Number(row.height)
}
