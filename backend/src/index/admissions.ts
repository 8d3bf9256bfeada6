import type { Sql } from '../facts/connection.js'
import { TOPICS } from '../protocol/profile.js'
import type { Agenda, Journal } from './journal.js'

/**
 * How many scores each place in the log has, so that outputs which become offerable with one fact do not tie. Engines take only
 * whole numbers below 2^53 as scores (`GASP.js` of `@bsv/gasp`), so a score counts these fractions of a millisecond of the base,
 * which works until the year 2248.
 */
export const SCORES_A_FACT = 1024

/** SQL for the log's setting `base`, null if it has none. */
export const BASE = "(select value ->> '$' from register where subject = 'setting base')"

/** The score before the first one, as given to peers. @param base The log's setting, in milliseconds since 1970. */
export function firstScore(base: number): number {
  return base * SCORES_A_FACT
}

/** Topics that every host has, stored as numbers: their names would take a third of each row. */
const CODES: readonly string[] = ['', TOPICS.names, TOPICS.ordinals]

/** A topic as stored in the column `topic`: a number, or its name if only this host has it. */
export function encodeTopic(topic: string): string | number {
  const code = CODES.indexOf(topic)
  return code > 0 ? code : topic
}

export function decodeTopic(stored: string | number): string {
  return typeof stored === 'number' ? (CODES[stored] ?? '') : stored
}

export interface Held {
  tid: number
  vout: number
  topic: string
}

interface Row {
  tid: number
  vout: number
  topic: string | number
  score: number
}

/**
 * The outputs that topics hold, with the scores by which peers page through them (`docs/follow.md`). An output gets a score when
 * it becomes offerable: it is admitted, its transaction is active again, it is unblocked, or its spender becomes inactive. Scores
 * follow from the order of the facts, so a rebuilt index has the same ones.
 */
export class Admissions {
  constructor(
    private readonly sql: Sql,
    private readonly tables: { journal: Journal; agenda: Agenda },
  ) {}

  /** @param txid In hex. */
  add(txid: string, held: readonly Held[]): void {
    const rows = held.map(({ tid, vout, topic }) => {
      const score = this.nextScore()
      this.tables.journal.admitted.push({ topic, outpoint: { txid, vout }, score })
      return [tid, vout, encodeTopic(topic), score]
    })
    this.sql.insertAll('insert into admission (tid, vout, topic, score)', rows)
  }

  remove({ tid, vout, topic }: Held): void {
    this.sql.run(
      'delete from admission where tid = ? and vout = ? and topic = ?',
      tid,
      vout,
      encodeTopic(topic),
    )
  }

  /** Gives new scores to outputs that became offerable because transactions became active or inactive. */
  offerAgain({ restored, deactivated }: { restored: number[]; deactivated: number[] }): void {
    const { sql } = this
    const held: Row[] = []
    for (const tid of restored)
      for (const row of sql.all('select tid, vout, topic, score from admission where tid = ?', tid))
        held.push(row as never)
    for (const sid of deactivated)
      for (const row of sql.all(
        `select a.tid, a.vout, a.topic, a.score from spend s join admission a on a.tid = s.pid and a.vout = s.vout
          where s.sid = ? and (select active from tx where id = s.pid) = 1 and not exists (
            select 1 from spend o join tx t on t.id = o.sid where o.pid = s.pid and o.vout = s.vout and t.active = 1)`,
        sid,
      ))
        held.push(row as never)
    this.renew(held)
  }

  /** Gives new scores to those of these unblocked outputs that are offerable. */
  offerOutputs(outputs: readonly Pick<Held, 'tid' | 'vout'>[]): void {
    const held = outputs.flatMap(({ tid, vout }) =>
      this.sql.all(
        `select a.tid, a.vout, a.topic, a.score from admission a join tx t on t.id = a.tid
          where a.tid = ? and a.vout = ? and t.active = 1`,
        tid,
        vout,
      ),
    )
    this.renew(held as never)
  }

  /** Gives new scores in the same order, so that parents stay before their children. */
  private renew(held: Row[]): void {
    const inOrder = held.sort((a, b) => a.score - b.score || (a.topic < b.topic ? -1 : 1))
    let last: Row | undefined
    for (const each of inOrder) {
      const { tid, vout, topic } = each
      // Two of its spenders may have become inactive.
      if (last?.tid === tid && last.vout === vout && last.topic === topic) continue
      last = each
      this.sql.run(
        'update admission set score = ? where tid = ? and vout = ? and topic = ?',
        ...[this.nextScore(), tid, vout, topic],
      )
    }
  }

  private nextScore(): number {
    const { counters } = this.tables.journal
    counters.score = Math.max(this.tables.agenda.seq * SCORES_A_FACT, counters.score + 1)
    return counters.score
  }
}
