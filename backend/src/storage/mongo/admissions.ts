import type { AdmissionsReader } from '../../graph/graph-store.js'
import type { AdmissionRecord } from '../../graph/records.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import { hashColumn, hexOf, inParts, outpointColumns, outpointOf } from '../rows/columns.js'
import type { Doc } from './collections.js'
import { anyOutpoint, type Documents, type Filter } from './documents.js'

/** How many admissions are checked for spends at once. */
const PAGE = 200

/** The admissions of a store. */
export function admissionsIn(documents: Documents): AdmissionsReader {
  return {
    async of(outpoint) {
      const docs = await documents.all('graph_admissions', outpointColumns(outpoint), { sort: { topic: 1 } })
      return docs.map(admissionOf)
    },
    among: (outpoints) => admissionsAmong(documents, outpoints),
    async ofTransaction(txid) {
      const sort = { vout: 1, topic: 1 } as const
      return (await documents.all('graph_admissions', { txid: hashColumn(txid) }, { sort })).map(admissionOf)
    },
    async unspentOfTopic({ topic, since, limit = Number.POSITIVE_INFINITY, always }) {
      const sort = { score: 1, txid: 1, vout: 1 } as const
      const found: AdmissionRecord[] = []
      for (let filter: Filter = { topic, score: { $gte: since } }; found.length < limit; ) {
        const docs = await documents.all('graph_admissions', filter, { sort, limit: PAGE })
        found.push(...(await unspent(documents, docs, always)).map(admissionOf))
        const last = docs.at(-1)
        if (last === undefined || docs.length < PAGE) break
        filter = { topic, ...after(last) }
      }
      return found.slice(0, limit)
    },
    async isApplied(topic, txid) {
      const applied = { txid: hashColumn(txid), topic }
      return (await documents.first('graph_applied', applied, { fields: ['topic'] })) !== undefined
    },
  }
}

export async function admissionsAmong(
  documents: Documents,
  outpoints: Outpoint[],
): Promise<AdmissionRecord[]> {
  const docs = await inParts(outpoints, (part) => documents.all('graph_admissions', anyOutpoint(part)))
  return docs.map(admissionOf)
}

/** The admissions of a topic after one. */
function after({ score, txid, vout }: Doc): Filter {
  return {
    score: { $gte: score },
    $or: [{ score: { $gt: score } }, { txid: { $gt: txid } }, { txid, vout: { $gt: vout } }],
  }
}

/** Those that no active transaction spends, or that have the index, and whose own transaction is active. */
async function unspent(documents: Documents, admissions: Doc[], always: number | undefined): Promise<Doc[]> {
  if (admissions.length === 0) return []
  const [spends, transactions] = await Promise.all([
    documents.all('graph_spends', anyOutpoint(admissions.map(outpointOf)), { fields: ['txid', 'vout'] }),
    documents.all(
      'graph_transactions',
      { _id: { $in: admissions.map(({ txid }) => txid) }, silent: true },
      { fields: ['txid'] },
    ),
  ])
  const spent = new Set(spends.map((spend) => formatOutpoint(outpointOf(spend))))
  const inactive = new Set(transactions.map(({ txid }) => hexOf(txid)))
  return admissions.filter((admission) => {
    const outpoint = outpointOf(admission)
    const isSpent = outpoint.vout !== always && spent.has(formatOutpoint(outpoint))
    return !isSpent && !inactive.has(outpoint.txid)
  })
}

export function admissionOf(doc: Doc): AdmissionRecord {
  return { outpoint: outpointOf(doc), topic: doc.topic, score: doc.score }
}
