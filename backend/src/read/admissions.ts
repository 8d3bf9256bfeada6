import type { Row, Sql } from '../facts/connection.js'
import type { AdmissionsReader } from '../graph/graph-store.js'
import type { AdmissionRecord } from '../graph/records.js'
import { decodeTopic, encodeTopic, firstScore, SCORES_A_FACT } from '../index/admissions.js'
import { blobOf, outpointOf, type Reader } from './reader.js'

/** No output has this index. */
const NO_OUTPUT = -1

/** See {@link AdmissionsReader}. */
export function admissionsIn(reader: Reader): AdmissionsReader {
  const ofTransactions = (txids: string[]): Promise<AdmissionRecord[]> =>
    reader.each(txids, (sql, txid) => sql.all(OF_TRANSACTION, blobOf(txid)).map(recordBy(sql)))
  const of = (sql: Sql, { txid, vout }: AdmissionRecord['outpoint']): AdmissionRecord[] =>
    sql.all(OF_OUTPOINT, blobOf(txid), vout).map(recordBy(sql))
  return {
    scoresPerMs: SCORES_A_FACT,
    of: async (outpoint) => reader.answer((sql) => of(sql, outpoint)),
    among: (outpoints) => reader.each(outpoints, of),
    ofTransaction: (txid) => ofTransactions([txid]),
    ofTransactions: (txids) => ofTransactions([...new Set(txids)].sort()),
    unspentOfTopic: async ({ topic, since, limit = Number.MAX_SAFE_INTEGER, always = NO_OUTPUT }) =>
      reader.answer((sql) => {
        const from = since - firstScoreOf(sql)
        return sql.all(UNSPENT, encodeTopic(topic), from, always, limit).map(recordBy(sql))
      }),
    isApplied: async (topic, txid) =>
      reader.single((sql) => sql.get(IS_APPLIED, blobOf(txid), encodeTopic(topic))) !== undefined,
  }
}

const OF_TRANSACTION = `select txid, vout, topic, score from tx cross join admission on tid = tx.id
  where txid = ? order by vout, topic`
const OF_OUTPOINT = `select txid, vout, topic, score from tx cross join admission on tid = tx.id
  where txid = ? and vout = ? order by topic`
const IS_APPLIED =
  'select 1 from tx cross join admission on tid = tx.id where txid = ? and +topic = ? limit 1'
const UNSPENT = `select txid, admission.vout, topic, score from admission cross join tx on tx.id = tid
  where topic = ? and score >= ? and tx.active = 1 and (admission.vout = ? or not exists (
    select 1 from spend cross join tx as spender on spender.id = sid
    where pid = admission.tid and spend.vout = admission.vout and spender.active = 1))
  order by score limit ?`

function recordBy(sql: Sql): (row: Row) => AdmissionRecord {
  let first: number | undefined
  return (row) => {
    first ??= firstScoreOf(sql)
    return { outpoint: outpointOf(row), topic: decodeTopic(row.topic), score: first + row.score }
  }
}

/** The score that those of the index count from. */
function firstScoreOf(sql: Sql): number {
  return firstScore(Number(sql.get(BASE)?.value ?? 0))
}

const BASE = "select value from setting where name = 'base'"
