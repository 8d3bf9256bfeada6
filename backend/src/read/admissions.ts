import type { Row, Sql } from '../facts/connection.js'
import type { AdmissionsReader } from '../graph/graph-store.js'
import type { AdmissionRecord } from '../graph/records.js'
import { decodeTopic, encodeTopic, firstScore, SCORES_A_FACT } from '../index/admissions.js'
import { blobOf, outpointOf, type Reader } from './reader.js'

/** No output has this index. */
const NO_OUTPUT = -1

/** See {@link AdmissionsReader}. */
export function admissionsIn(reader: Reader): AdmissionsReader {
  const ofTransaction = (sql: Sql, txid: string): AdmissionRecord[] =>
    sql.all(OF_TRANSACTION, blobOf(txid)).map(recordOf)
  const of = (sql: Sql, { txid, vout }: AdmissionRecord['outpoint']): AdmissionRecord[] =>
    sql.all(OF_OUTPOINT, blobOf(txid), vout).map(recordOf)
  return {
    scoresPerMs: SCORES_A_FACT,
    of: (outpoint) => reader.single((sql) => of(sql, outpoint)),
    among: (outpoints) => reader.each(outpoints, of),
    ofTransaction: (txid) => reader.single((sql) => ofTransaction(sql, txid)),
    ofTopic: ({ topic, since, limit }) =>
      reader.answer((sql) => sql.all(OF_TOPIC, encodeTopic(topic), placeIn(sql, since), limit).map(recordOf)),
    unspentOfTopic: ({ topic, since, limit = Number.MAX_SAFE_INTEGER, always = NO_OUTPUT }) =>
      reader.answer((sql) =>
        sql.all(UNSPENT, encodeTopic(topic), placeIn(sql, since), always, limit).map(recordOf),
      ),
    isApplied: (topic, txid) =>
      reader.single((sql) => sql.get(IS_APPLIED, blobOf(txid), encodeTopic(topic))) !== undefined,
  }
}

const BASE = "(select value from setting where name = 'base') as base"
const OF_TRANSACTION = `select txid, vout, topic, score, ${BASE} from tx cross join admission on tid = tx.id
  where txid = ? order by vout, topic`
const OF_OUTPOINT = `select txid, vout, topic, score, ${BASE} from tx cross join admission on tid = tx.id
  where txid = ? and vout = ? order by topic`
const IS_APPLIED =
  'select 1 from tx cross join admission on tid = tx.id where txid = ? and +topic = ? limit 1'
const OF_TOPIC = `select txid, admission.vout, topic, score, ${BASE} from admission cross join tx on tx.id = tid
  where topic = ? and score >= ? and tx.active = 1 order by score limit ?`
const UNSPENT = `select txid, admission.vout, topic, score, ${BASE} from admission cross join tx on tx.id = tid
  where topic = ? and score >= ? and tx.active = 1 and (admission.vout = ? or not exists (
    select 1 from spend cross join tx as spender on spender.id = sid
    where pid = admission.tid and spend.vout = admission.vout and spender.active = 1))
  order by score limit ?`

/** The place in the index from which admissions have at least a score. */
function placeIn(sql: Sql, score: number): number {
  return score - firstScore(Number(sql.get(`select ${BASE}`)?.base ?? 0))
}

function recordOf(row: Row): AdmissionRecord {
  const score = firstScore(Number(row.base ?? 0)) + row.score
  return { outpoint: outpointOf(row), topic: decodeTopic(row.topic), score }
}
