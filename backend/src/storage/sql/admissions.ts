import type { AdmissionsReader } from '../../graph/graph-store.js'
import type { AdmissionRecord } from '../../graph/records.js'
import type { Outpoint } from '../../protocol/outpoint.js'
import { hashColumn, inParts, type OutpointRow, outpointOf, outpointPair } from '../rows/columns.js'
import { anyOutpoint, outpointValues, type SqlReader } from './database.js'

/** No output has this index. */
const NO_OUTPUT = -1

/** The admissions of a store. */
export function admissionsIn(reader: SqlReader): AdmissionsReader {
  return {
    async of(outpoint) {
      const sql = 'select * from graph_admissions where txid = ? and vout = ? order by topic'
      return (await reader.all(sql, outpointPair(outpoint))).map(admissionOf)
    },
    among: (outpoints) => admissionsAmong(reader, outpoints),
    async ofTransaction(txid) {
      const sql = 'select * from graph_admissions where txid = ? order by vout, topic'
      return (await reader.all(sql, [hashColumn(txid)])).map(admissionOf)
    },
    async unspentOfTopic({ topic, since, limit = Number.MAX_SAFE_INTEGER, always = NO_OUTPUT }) {
      const rows = await reader.all(
        // Joins and not `exists`: for that, MariaDB would read all spends into a temporary table.
        `select admissions.txid, admissions.vout, topic, score from graph_admissions as admissions
         left join graph_spends as spends on spends.txid = admissions.txid and spends.vout = admissions.vout
         left join graph_transactions as own on own.txid = admissions.txid and own.silent = 1
         where topic = ? and score >= ? and own.txid is null
         and (spends.txid is null or admissions.vout = ?)
         order by score, admissions.txid, admissions.vout limit ?`,
        [topic, since, always, limit],
      )
      return rows.map(admissionOf)
    },
    async isApplied(topic, txid) {
      const sql = 'select topic from graph_applied where txid = ? and topic = ?'
      return (await reader.first(sql, [hashColumn(txid), topic])) !== undefined
    },
  }
}

export async function admissionsAmong(reader: SqlReader, outpoints: Outpoint[]): Promise<AdmissionRecord[]> {
  return await inParts(outpoints, async (part) => {
    const sql = `select * from graph_admissions where ${anyOutpoint(part)}`
    return (await reader.all(sql, outpointValues(part))).map(admissionOf)
  })
}

export function admissionOf(row: OutpointRow & { topic: string; score: unknown }): AdmissionRecord {
  return { outpoint: outpointOf(row), topic: row.topic, score: Number(row.score) }
}
