import type { AdmissionsReader } from '../../graph/graph-store.js'
import type { AdmissionRecord } from '../../graph/records.js'
import type { Outpoint } from '../../protocol/outpoint.js'
import { hashColumn, inParts, outpointColumns, outpointOf } from '../rows/columns.js'
import { anyOf, anyOutpoint, type Row, type RowReader } from '../rows/rows.js'
import type { Lookups } from './lookups.js'

/** The admissions of a store. */
export function admissionsIn(
  rows: RowReader,
  { unspentOfTopic }: Pick<Lookups, 'unspentOfTopic'>,
): AdmissionsReader {
  return {
    scoresPerMs: 1,
    async of(outpoint) {
      const own = outpointColumns(outpoint)
      return (await rows.all('graph_admissions', own, { sort: { topic: 1 } })).map(admissionOf)
    },
    among: (outpoints) => admissionsAmong(rows, outpoints),
    async ofTransaction(txid) {
      const sort = { vout: 1, topic: 1 } as const
      return (await rows.all('graph_admissions', { txid: hashColumn(txid) }, { sort })).map(admissionOf)
    },
    async ofTransactions(txids) {
      const sort = { txid: 1, vout: 1, topic: 1 } as const
      const found = await inParts(txids, (part) =>
        rows.all('graph_admissions', { txid: anyOf(part) }, { sort }),
      )
      return found.map(admissionOf)
    },
    unspentOfTopic,
    async isApplied(topic, txid) {
      const applied = { txid: hashColumn(txid), topic }
      return (await rows.first('graph_applied', applied, { fields: ['topic'] })) !== undefined
    },
  }
}

export async function admissionsAmong(rows: RowReader, outpoints: Outpoint[]): Promise<AdmissionRecord[]> {
  const found = await inParts(outpoints, (part) => rows.all('graph_admissions', anyOutpoint(part)))
  return found.map(admissionOf)
}

export function admissionOf(row: Row): AdmissionRecord {
  return { outpoint: outpointOf(row), topic: row.topic, score: Number(row.score) }
}

/** The setting that holds the last score that was given. */
export const SCORES = { name: 'scores' }

/** The last score that a store has given; undefined if it has given none. Where writes are applied step by step, it comes last. */
export async function lastScore(rows: RowReader): Promise<number | undefined> {
  const row = await rows.first('graph_settings', SCORES, { fields: ['value'] })
  return row === undefined ? undefined : Number(row.value)
}
