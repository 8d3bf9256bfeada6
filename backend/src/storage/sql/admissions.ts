import type { AdmissionsReader } from '../../graph/graph-store.js'
import type { AdmissionRecord } from '../../graph/records.js'
import type { Outpoint } from '../../protocol/outpoint.js'
import { hashColumn, inParts, type OutpointRow, outpointOf, outpointPair } from '../rows/columns.js'
import { anyOutpoint, outpointValues, type SqlReader } from './database.js'

/** The admissions of a store. */
export function admissionsIn(reader: SqlReader): AdmissionsReader {
  return {
    of: (outpoint) => admissionsOf(reader, outpoint),
    among: (outpoints) => admissionsAmong(reader, outpoints),
    ofTransaction: (txid) => admissionsOfTransaction(reader, txid),
    unspentOfTopic: (query) => unspentOfTopic(reader, query),
    isApplied: (topic, txid) => isApplied(reader, topic, txid),
  }
}

async function admissionsOf(reader: SqlReader, outpoint: Outpoint): Promise<AdmissionRecord[]> {
  const rows = await reader.all(
    'select * from graph_admissions where txid = ? and vout = ? order by topic',
    outpointPair(outpoint),
  )
  return rows.map(admissionOf)
}

async function admissionsOfTransaction(reader: SqlReader, txid: string): Promise<AdmissionRecord[]> {
  const rows = await reader.all('select * from graph_admissions where txid = ? order by vout, topic', [
    hashColumn(txid),
  ])
  return rows.map(admissionOf)
}

export async function admissionsAmong(reader: SqlReader, outpoints: Outpoint[]): Promise<AdmissionRecord[]> {
  return await inParts(outpoints, async (part) => {
    const rows = await reader.all(
      `select * from graph_admissions where ${anyOutpoint(part)}`,
      outpointValues(part),
    )
    return rows.map(admissionOf)
  })
}

async function unspentOfTopic(
  reader: SqlReader,
  query: { topic: string; since: number; limit?: number },
): Promise<AdmissionRecord[]> {
  const { topic, since, limit = Number.MAX_SAFE_INTEGER } = query
  const rows = await reader.all(
    // Joins and not `exists`: for that, MariaDB would read all spends into a temporary table.
    `select admissions.txid, admissions.vout, topic, score from graph_admissions as admissions
     left join graph_spends as spends on spends.txid = admissions.txid and spends.vout = admissions.vout
     left join graph_transactions as own on own.txid = admissions.txid and own.silent = 1
     where topic = ? and score >= ? and spends.txid is null and own.txid is null
     order by score, admissions.txid, admissions.vout limit ?`,
    [topic, since, limit],
  )
  return rows.map(admissionOf)
}

async function isApplied(reader: SqlReader, topic: string, txid: string): Promise<boolean> {
  const row = await reader.first('select topic from graph_applied where txid = ? and topic = ?', [
    hashColumn(txid),
    topic,
  ])
  return row !== undefined
}

export function admissionOf(row: OutpointRow & { topic: string; score: unknown }): AdmissionRecord {
  return { outpoint: outpointOf(row), topic: row.topic, score: Number(row.score) }
}
