import type { Row, Sql } from '../facts/connection.js'
import type { AdmissionRecord } from '../graph/records.js'
import type { Awaitable } from '../graph/yield-to-event-loop.js'
import { BASE, decodeTopic, encodeTopic, firstScore, SCORES_A_FACT } from '../index/admissions.js'
import type { Outpoint } from '../protocol/outpoint.js'
import { blobOf, outpointOf, type Reader } from './reader.js'

/** No output has this index. */
const NO_OUTPUT = -1

export class Admissions {
  /** Scores per millisecond. They count from the time when the store was made, since 1970. */
  readonly scoresPerMs = SCORES_A_FACT

  constructor(private readonly reader: Reader) {}

  /** The topics that hold an output. */
  of(outpoint: Outpoint): AdmissionRecord[] {
    return this.reader.answer((sql) => admissionsOf(sql, outpoint))
  }

  /** Every admission of these outputs. Yields if they are many. */
  among(outpoints: Outpoint[]): Awaitable<AdmissionRecord[]> {
    return this.reader.each(outpoints, admissionsOf)
  }

  /** Every admission of a transaction's outputs. */
  ofTransaction(txid: string): AdmissionRecord[] {
    return this.reader.answer((sql) => sql.all(OF_TRANSACTION, blobOf(txid)).map(recordOf))
  }

  /** The outputs of a topic from a score on, spent or not, by score. */
  ofTopic({ topic, since, limit }: TopicQuery & { limit: number }): AdmissionRecord[] {
    return this.reader.answer((sql) =>
      sql.all(OF_TOPIC, encodeTopic(topic), placeIn(sql, since), limit).map(recordOf),
    )
  }

  /**
   * The unspent outputs of a topic from a score on, by score.
   *
   * @param query.always An output index: such outputs are returned even if they are spent.
   */
  unspentOfTopic(query: TopicQuery & { limit?: number; always?: number }): AdmissionRecord[] {
    const { topic, since, limit = Number.MAX_SAFE_INTEGER, always = NO_OUTPUT } = query
    return this.reader.answer((sql) =>
      sql.all(UNSPENT, encodeTopic(topic), placeIn(sql, since), always, limit).map(recordOf),
    )
  }

  isApplied(topic: string, txid: string): boolean {
    return this.reader.answer((sql) => sql.get(IS_APPLIED, blobOf(txid), encodeTopic(topic))) !== undefined
  }
}

interface TopicQuery {
  topic: string
  /** A score. */
  since: number
}

function admissionsOf(sql: Sql, { txid, vout }: Outpoint): AdmissionRecord[] {
  return sql.all(OF_OUTPOINT, blobOf(txid), vout).map(recordOf)
}

const OF_TRANSACTION = `select txid, vout, topic, score, ${BASE} as base from tx cross join admission on tid = tx.id
  where txid = ? order by vout, topic`
const OF_OUTPOINT = `select txid, vout, topic, score, ${BASE} as base from tx cross join admission on tid = tx.id
  where txid = ? and vout = ? order by topic`
const IS_APPLIED =
  'select 1 from tx cross join admission on tid = tx.id where txid = ? and +topic = ? limit 1'
const OF_TOPIC = `select txid, admission.vout, topic, score, ${BASE} as base from admission cross join tx on tx.id = tid
  where topic = ? and score >= ? and tx.active = 1 order by score limit ?`
const UNSPENT = `select txid, admission.vout, topic, score, ${BASE} as base from admission cross join tx on tx.id = tid
  where topic = ? and score >= ? and tx.active = 1 and (admission.vout = ? or not exists (
    select 1 from spend cross join tx as spender on spender.id = sid
    where pid = admission.tid and spend.vout = admission.vout and spender.active = 1))
  order by score limit ?`

/** The stored value of a score. */
function placeIn(sql: Sql, score: number): number {
  return score - firstScore(Number(sql.get(`select ${BASE} as base`)?.base ?? 0))
}

function recordOf(row: Row): AdmissionRecord {
  const score = firstScore(Number(row.base ?? 0)) + row.score
  return { outpoint: outpointOf(row), topic: decodeTopic(row.topic), score }
}
