import type { Place } from '../read/lineages.js'
import type { StreamPageQuery, StreamRow, Streams } from '../read/read-streams.js'
import { type Documents, inLineage } from './documents.js'
import { lineagesIn } from './lineages.js'

const FIELDS = ['txid', 'vout', 'satoshis', 'content_sha256', 'content_type', 'content_length', 'step']

/** The streams of a database. */
export function streamRowsIn(documents: Documents): Streams {
  const { placeOf } = lineagesIn(documents)
  return {
    async streamPage(query) {
      for (let place = await placeOf(query.outpoint); place !== undefined; ) {
        const rows = await pageFrom(documents, place, query)
        // Where the output has another place since, this page may be of neither.
        const now = await placeOf(query.outpoint)
        if (now !== undefined && isSame(place, now)) return rows
        place = now
      }
      return []
    },
  }
}

async function pageFrom(
  documents: Documents,
  { lineage, step }: Place,
  { direction, from, limit }: StreamPageQuery,
): Promise<StreamRow[]> {
  const isOnwards = direction === 'onwards'
  const docs = await documents.all(
    'graph_outputs',
    { ...inLineage(lineage), step: isOnwards ? { $gte: step + from } : { $lte: step - from } },
    { sort: { step: isOnwards ? 1 : -1 }, limit, fields: FIELDS },
  )
  return docs.map((doc) => ({ ...doc, away: doc.step - step }))
}

function isSame(one: Place, other: Place): boolean {
  const [txid, vout] = one.lineage
  return one.step === other.step && vout === other.lineage[1] && txid.equals(other.lineage[0])
}
