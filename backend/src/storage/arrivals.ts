import type { TransactionRecord } from '../graph/records.js'
import type { Admitted, Arrival } from '../graph/upkeep.js'
import { hashColumn, hexOf, inParts, type OutpointRow, outpointOf } from './columns.js'
import { REBUILD_PAGE } from './derived-tables.js'
import { placeText } from './rebuild-mark.js'

/** What the order in which transactions came is read from. */
export interface ArrivalRows {
  /** Transactions from behind a place on, in their order, so many of them. */
  page(place: string, limit: number): Promise<{ txid: unknown; arrival: unknown }[]>
  /** What topics hold of transactions. */
  admissions(txids: Buffer[]): Promise<(OutpointRow & { topic: string })[]>
  transaction(txid: string): Promise<TransactionRecord | undefined>
}

/** See `IndexRebuild.arrivals`. */
export async function* arrivalsBehind(store: ArrivalRows, after: string): AsyncGenerator<Arrival> {
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

async function admittedOf(store: ArrivalRows, txids: Buffer[]): Promise<Map<string, Admitted[]>> {
  const admitted = new Map<string, Admitted[]>()
  for (const row of await inParts(txids, (part) => store.admissions(part))) {
    const outpoint = outpointOf(row)
    const known = admitted.get(outpoint.txid) ?? []
    known.push({ topic: row.topic, outpoint })
    admitted.set(outpoint.txid, known)
  }
  return admitted
}
