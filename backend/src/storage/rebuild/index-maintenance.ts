import type { Admitted, LoggedTransaction, RebuildCheckpoint } from '../../graph/index-maintenance.js'
import type { TransactionRecord } from '../../graph/records.js'
import { TOPICS } from '../../protocol/profile.js'
import { hashColumn, hexOf, inParts, type OutpointRow, outpointOf } from '../rows/columns.js'

/** The tables, or collections, that hold nothing but what follows from bytes, proofs and admissions. */
export const DERIVED = [
  'graph_traits',
  'graph_outputs',
  'graph_nodes',
  'graph_names',
  'graph_silent_facts',
  'graph_backlog',
] as const

/** Where the index has the outputs of a topic: tables, and kinds of the facts of inactive transactions. */
export interface ComparedSide {
  topic: string
  /** The first has each output once. */
  tables: [IndexTable, ...IndexTable[]]
  kinds: string[]
}

type IndexTable = 'graph_outputs' | 'graph_nodes' | 'graph_names'

export const COMPARED_SIDES: ComparedSide[] = [
  { topic: TOPICS.ordinals, tables: ['graph_outputs'], kinds: ['output'] },
  { topic: TOPICS.names, tables: ['graph_nodes', 'graph_names'], kinds: ['node', 'name'] },
]

/** About how many admissions are compared at once: few enough to take some milliseconds. */
export const COMPARED_PART = 2000

/** How many blobs, or transactions, a rebuild handles at once. */
export const REBUILD_PAGE = 500

/** The name of the setting that holds the checkpoint while the index is incomplete. */
export const REBUILD_CHECKPOINT = 'reindex'
const NEEDED = 'needed'
const FROM = 'from '

export function formatCheckpoint(checkpoint: RebuildCheckpoint): string {
  return checkpoint.state === 'needed' ? NEEDED : FROM + checkpoint.place
}

export function parseCheckpoint(text: string): RebuildCheckpoint {
  return text.startsWith(FROM) ? { state: 'under way', place: text.slice(FROM.length) } : { state: 'needed' }
}

/** A position in insertion order: the number of the write that inserted a transaction, and its txid. */
export function formatPosition(row: { arrival: unknown; txid: unknown }): string {
  return `${Number(row.arrival)} ${hexOf(row.txid)}`
}

/** @param text Empty for the position before all transactions. */
export function parsePosition(text: string): { order: number; txid: Buffer } {
  const [order = '', txid = ''] = text.split(' ')
  return { order: Number(order), txid: hashColumn(txid) }
}

/** The lookups behind {@link loggedAfter}. */
export interface TransactionLogRows {
  /** At most `limit` transactions after a position, in insertion order. */
  page(position: string, limit: number): Promise<{ txid: unknown; arrival: unknown }[]>
  admissions(txids: Buffer[]): Promise<(OutpointRow & { topic: string })[]>
  transaction(txid: string): Promise<TransactionRecord | undefined>
}

/** See `IndexRebuild.transactionLog`. */
export async function* loggedAfter(
  log: TransactionLogRows,
  after: string,
): AsyncGenerator<LoggedTransaction> {
  for (let position = after; ; ) {
    const rows = await log.page(position, REBUILD_PAGE)
    const admitted = await admittedOf(
      log,
      rows.map((row) => hashColumn(hexOf(row.txid))),
    )
    for (const row of rows) {
      const txid = hexOf(row.txid)
      const record = await log.transaction(txid)
      if (record === undefined) continue
      yield { txid, raw: record.raw, admitted: admitted.get(txid) ?? [], place: formatPosition(row) }
    }
    const last = rows.at(-1)
    if (last === undefined) return
    position = formatPosition(last)
  }
}

async function admittedOf(log: TransactionLogRows, txids: Buffer[]): Promise<Map<string, Admitted[]>> {
  const admitted = new Map<string, Admitted[]>()
  for (const row of await inParts(txids, (part) => log.admissions(part))) {
    const outpoint = outpointOf(row)
    const known = admitted.get(outpoint.txid) ?? []
    known.push({ topic: row.topic, outpoint })
    admitted.set(outpoint.txid, known)
  }
  return admitted
}
