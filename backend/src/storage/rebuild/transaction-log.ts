import type { Admitted, LoggedTransaction } from '../../graph/index-maintenance.js'
import type { TransactionRecord } from '../../graph/records.js'
import { hashColumn, hexOf, inParts, type OutpointRow, outpointOf } from '../rows/columns.js'
import { placeText } from './checkpoint.js'
import { REBUILD_PAGE } from './derived-tables.js'

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
