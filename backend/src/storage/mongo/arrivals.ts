import type { Db } from 'mongodb'
import type { Admitted, Arrival } from '../../graph/upkeep.js'
import { hexOf, inParts, outpointOf } from '../columns.js'
import { REBUILD_PAGE } from '../derived-tables.js'
import { placeOf, placeText } from '../rebuild-mark.js'
import { countIn, type Documents, type Filter } from './documents.js'
import { transactionRecord } from './transaction-reads.js'

/** The transactions whose bytes are held in the order in which they came, for a rebuild of the index. */

function behind(place: string): Filter {
  const { arrival, txid } = placeOf(place)
  return { arrival: { $gte: arrival }, $or: [{ arrival: { $gt: arrival } }, { txid: { $gt: txid } }] }
}

export async function* arrivalsBehind(documents: Documents, after: string): AsyncGenerator<Arrival> {
  for (let place = after; ; ) {
    const docs = await documents.all('graph_transactions', behind(place), {
      sort: { arrival: 1, txid: 1 },
      limit: REBUILD_PAGE,
      fields: ['txid', 'arrival'],
    })
    const admitted = await admittedOf(
      documents,
      docs.map(({ txid }) => txid),
    )
    for (const doc of docs) {
      const txid = hexOf(doc.txid)
      const record = await transactionRecord(documents, txid)
      if (record === undefined) continue
      yield { txid, raw: record.raw, admitted: admitted.get(txid) ?? [], place: placeText(doc) }
    }
    const last = docs.at(-1)
    if (last === undefined) return
    place = placeText(last)
  }
}

export async function arrivalsLeft(db: Db, after: string): Promise<number> {
  return await countIn(db, 'graph_transactions', behind(after))
}

async function admittedOf(documents: Documents, txids: Buffer[]): Promise<Map<string, Admitted[]>> {
  const admitted = new Map<string, Admitted[]>()
  const docs = await inParts(txids, (part) => documents.all('graph_admissions', { txid: { $in: part } }))
  for (const { topic, ...doc } of docs) {
    const outpoint = outpointOf(doc)
    const others = admitted.get(outpoint.txid) ?? []
    admitted.set(outpoint.txid, [...others, { topic, outpoint }])
  }
  return admitted
}
