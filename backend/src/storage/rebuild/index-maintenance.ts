import type { Admitted, LoggedTransaction, RebuildCheckpoint } from '../../graph/index-maintenance.js'
import type { TransactionRecord } from '../../graph/records.js'
import { TOPICS } from '../../protocol/profile.js'
import { hashColumn, hexOf, inParts, type OutpointRow, outpointOf } from '../rows/columns.js'

/** How the mark of a rebuild stands among the settings of a store, and a place in the order of arrivals as text. */

/** The name of the setting that is there while the index is not whole. */
export const REBUILD_CHECKPOINT = 'reindex'
const NEEDED = 'needed'
const FROM = 'from '

export function markText(mark: RebuildCheckpoint): string {
  return mark.state === 'needed' ? NEEDED : FROM + mark.place
}

export function markOf(text: string): RebuildCheckpoint {
  return text.startsWith(FROM) ? { state: 'under way', place: text.slice(FROM.length) } : { state: 'needed' }
}

/** A place in the order of arrivals: the number of the write that brought a transaction, and its txid. */
export function placeText(row: { arrival: unknown; txid: unknown }): string {
  return `${Number(row.arrival)} ${hexOf(row.txid)}`
}

/** What such a text says; of an empty one, what is before all arrivals. */
export function placeOf(text: string): { arrival: number; txid: Buffer } {
  const [arrival = '', txid = ''] = text.split(' ')
  return { arrival: Number(arrival), txid: hashColumn(txid) }
}

/** The tables, or collections, whose rows follow from bytes, proofs and admissions, and that hold nothing else. */
export const DERIVED = [
  'graph_traits',
  'graph_outputs',
  'graph_nodes',
  'graph_names',
  'graph_silent_facts',
  'graph_backlog',
] as const

/** What the outputs of a topic are in the index, and in what silent transactions would say: tables, and kinds of facts. */
export interface ComparedSide {
  topic: string
  /** The first has each output once. */
  tables: [Shown, ...Shown[]]
  kinds: string[]
}

type Shown = 'graph_outputs' | 'graph_nodes' | 'graph_names'

export const COMPARED_SIDES: ComparedSide[] = [
  { topic: TOPICS.ordinals, tables: ['graph_outputs'], kinds: ['output'] },
  { topic: TOPICS.names, tables: ['graph_nodes', 'graph_names'], kinds: ['node', 'name'] },
]

/** About how many admissions are compared at once: few enough to take some milliseconds. */
export const COMPARED_PART = 2000

/** How many owners of pieces, and how many transactions, a rebuild looks at at once. */
export const REBUILD_PAGE = 500

/** What the order in which transactions came is read from. */
export interface TransactionLogRows {
  /** Transactions from behind a place on, in their order, so many of them. */
  page(place: string, limit: number): Promise<{ txid: unknown; arrival: unknown }[]>
  /** What topics hold of transactions. */
  admissions(txids: Buffer[]): Promise<(OutpointRow & { topic: string })[]>
  transaction(txid: string): Promise<TransactionRecord | undefined>
}

/** See `IndexRebuild.arrivals`. */
export async function* loggedAfter(
  store: TransactionLogRows,
  after: string,
): AsyncGenerator<LoggedTransaction> {
  for (let place = after; ; ) {
    const rows = await store.page(place, REBUILD_PAGE)
    const admitted = await admittedOf(
      store,
      rows.map((row) => hashColumn(hexOf(row.txid))),
    )
    for (const row of rows) {
      const txid = hexOf(row.txid)
      const record = await store.transaction(txid)
      if (record === undefined) continue
      yield { txid, raw: record.raw, admitted: admitted.get(txid) ?? [], place: placeText(row) }
    }
    const last = rows.at(-1)
    if (last === undefined) return
    place = placeText(last)
  }
}

async function admittedOf(store: TransactionLogRows, txids: Buffer[]): Promise<Map<string, Admitted[]>> {
  const admitted = new Map<string, Admitted[]>()
  for (const row of await inParts(txids, (part) => store.admissions(part))) {
    const outpoint = outpointOf(row)
    const known = admitted.get(outpoint.txid) ?? []
    known.push({ topic: row.topic, outpoint })
    admitted.set(outpoint.txid, known)
  }
  return admitted
}
