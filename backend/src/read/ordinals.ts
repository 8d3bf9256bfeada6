import type { Row, Sql } from '../facts/connection.js'
import { type ContentSummary, ORIGIN, type OrdinalStep, type OutputRecord, TIP } from '../graph/records.js'
import { type Awaitable, whenReady, yieldToEventLoop } from '../graph/yield-to-event-loop.js'
import { BY_RANK } from '../index/active.js'
import { outpointIn } from '../index/outputs.js'
import type { Outpoint } from '../protocol/outpoint.js'
import { type Guard, placesOf } from './guard.js'
import { blobOf, hexOf, outpointOf, type Reader } from './reader.js'
import { spenderOf } from './transactions.js'

/** Outputs of `tm_ordinals`, and the ordinals that move through them. */
export class Ordinals {
  constructor(
    private readonly reader: Reader,
    private readonly guard: Guard,
  ) {}

  /** An admitted output. */
  output(outpoint: Outpoint): OutputRecord | undefined {
    this.guard.refuse([outpoint])
    const row = this.reader.answer((sql) => sql.get(OUTPUT_AT, blobOf(outpoint.txid), outpoint.vout))
    return row && outputOf(row)
  }

  /** The 1-sat coin that an output received by the ordinal arithmetic (BRC-159), if it is known. */
  previousOf(outpoint: Outpoint): Outpoint | undefined {
    const row = this.reader.answer((sql) => sql.get(RECEIVED, blobOf(outpoint.txid), outpoint.vout))
    return row && outpointOf(row)
  }

  firstContentOutput(txid: string): OutputRecord | undefined {
    const row = this.reader.answer((sql) => sql.get(FIRST_CONTENT, blobOf(txid)))
    return this.guard.passing(row && outputOf(row))
  }

  /**
   * The current output of the ordinal in `outpoint`; undefined if it was burnt or left what this store sees. Without numbers, it
   * is followed coin by coin, yielding now and then.
   */
  currentOutput(outpoint: Outpoint): Awaitable<Outpoint | undefined> {
    this.guard.refuse([outpoint])
    return whenReady(this.follow(outpoint), (tip) => this.passingTip(tip))
  }

  /** As {@link currentOutput}, for the origin of a name, which always has a number. */
  currentOfName(origin: Outpoint): Outpoint | undefined {
    this.guard.refuse([origin])
    return this.passingTip(this.reader.answer((sql) => followed(sql, origin)).tip)
  }

  /**
   * The ordinal in `outpoint` at a step of its life: {@link TIP}, {@link ORIGIN}, or a number of steps from its origin.
   * Undefined if there is no such step, or if the origin is not known because the lineage has a hole. An output of another
   * value than 1 satoshi is a chain of one.
   */
  at(outpoint: Outpoint, sequence: number): OrdinalStep | undefined {
    this.guard.refuse([outpoint])
    return this.guard.passingStep(
      this.reader.answer((sql) => ordinalAt(sql, outpoint, sequence)),
      sequence,
    )
  }

  /**
   * The whole life of the ordinal in `outpoint`: each outpoint of its unbroken 1-sat lineage, from the first to the tip, read
   * a page at a time. Empty if its origin is not known, as for {@link at}. An output of another value than 1 satoshi is a
   * lineage of one.
   */
  *lineage(outpoint: Outpoint): Generator<Outpoint> {
    const { reader } = this
    if (reader.answer((sql) => ordinalAt(sql, outpoint, TIP)) === undefined) return
    for (let from = 0; ; ) {
      const page = reader.answer((sql) => {
        const { lin = null } = placeOf(sql, outpoint) ?? {}
        return lin === null ? undefined : stepsOf(sql, 'txid, vout', { lin, from, limit: STEPS_A_PAGE })
      })
      for (const row of page?.rows ?? []) {
        from = row.step + 1
        yield outpointOf(row)
      }
      if (page === undefined || page.isLast) return
    }
  }

  private follow(outpoint: Outpoint): Awaitable<Outpoint | undefined> {
    const { tip, isLast } = this.reader.answer((sql) => followed(sql, outpoint))
    return isLast ? tip : yieldToEventLoop().then(() => this.follow(tip))
  }

  private passingTip(tip: Outpoint | undefined): Outpoint | undefined {
    const { guard, reader } = this
    if (tip !== undefined && !guard.isOpen) guard.refuse(reader.answer((sql) => shownAt(sql, tip)))
    return tip
  }
}

/** An output, and the one whose content its ordinal shows there. */
export function shownAt(sql: Sql, tip: Outpoint): Outpoint[] {
  return [tip, ...placesOf(ordinalAt(sql, tip, TIP))]
}

export interface Place {
  oid: number
  tid: number
  carrier: number
  /** The lineage, by its first output; null while a coin before the output is unknown. */
  lin: number | null
  step: number
  /** The step of the first content; null before that. */
  origin: number | null
}

/** The columns that {@link outputOf} reads. Listed, because decoding a column takes the driver longer than finding the row. */
export const OUTPUT = 'txid, vout, sats, carrier, sha, ctype, clen, owner, parent, pok, mlen'
/** The columns of an output's place and of {@link contentOf}. */
export const CONTENT = 'txid, vout, sha, ctype, clen'
const AT_OUTPOINT = 'from tx cross join out on tid = tx.id'
const AT_STEP = 'from out cross join tx on tx.id = tid'

const PLACE = `select oid, tid, carrier, lin, step, origin ${AT_OUTPOINT} where txid = ? and vout = ? and out.active = 1`
const OUTPUT_AT = `select ${OUTPUT} ${AT_OUTPOINT} where txid = ? and vout = ? and out.active = 1 and carrier = 0`
const RECEIVED = `select coin.txid, pvout as vout ${AT_OUTPOINT} cross join tx as coin on coin.id = ptid
  where tx.txid = ? and out.vout = ? and out.active = 1`
const FIRST_CONTENT = `select ${OUTPUT} ${AT_OUTPOINT}
  where txid = ? and sha is not null and out.active = 1 order by vout limit 1`
const OUTPUT_OF = `select ${OUTPUT}, step ${AT_STEP} where oid = ?`
const OUTPOINT_OF = `select txid, vout ${AT_STEP} where oid = ?`
const CLAIM_OF = 'select parent from out where oid = ?'

const STEP = 'oid, step, origin, latest, latestparent, lastmap'
/**
 * An output, as `asked`, with the tip of its lineage in one statement: to begin a statement takes longer than to find one more
 * row. The tip is rarely tied with another output, and sorting those here would take as long as the rest.
 */
const TIP_AT = `select asked.carrier as asked_carrier, asked.origin as asked_origin, tx.txid,
    out.vout, out.sats, out.carrier, out.sha, out.ctype, out.clen, out.owner, out.parent, out.pok, out.mlen,
    out.lin, out.oid, out.step, out.origin, out.latest, out.latestparent, out.lastmap,
    exists (select 1 from out as peer where peer.lin = out.lin and peer.step = out.step and peer.oid <> out.oid and peer.active = 1) as tied
  from tx as own cross join out as asked on asked.tid = own.id cross join out on out.oid = (
    select last.oid from out as last where last.lin = asked.lin and last.active = 1 order by last.step desc limit 1)
  cross join tx on tx.id = out.tid where own.txid = ? and asked.vout = ? and asked.active = 1`
const TIP_OF = `select own, ${OUTPUT}, ${STEP} ${AT_STEP}
  where lin = ? and out.active = 1 order by step desc, ${BY_RANK} limit 1`
const STEP_OF = `select ${OUTPUT}, ${STEP} ${AT_STEP}
  where lin = ? and step = ? and out.active = 1 order by ${BY_RANK} limit 1`

/** Undefined if there is no such output, or it does not count. */
export function placeOf(sql: Sql, { txid, vout }: Outpoint): Place | undefined {
  return sql.get(PLACE, blobOf(txid), vout) as Place | undefined
}

/** @param row With the columns {@link OUTPUT}. */
export function outputOf(row: Row): OutputRecord {
  const content = contentOf(row)
  return {
    outpoint: outpointOf(row),
    satoshis: row.sats,
    ...(content && { content }),
    ...(row.owner !== null && { owner: hexOf(row.owner) }),
    ...(row.parent !== null && { [row.pok ? 'parent' : 'claimedParent']: outpointIn(row.parent) }),
    ...(row.mlen !== null && { mapLength: row.mlen }),
    ...(row.carrier && { carrier: true }),
  }
}

/** The content in a row of `out`; undefined if it has none. */
export function contentOf({ sha, ctype, clen }: Row): ContentSummary | undefined {
  return sha === null ? undefined : { sha256: hexOf(sha), contentType: textOf(ctype), length: clen }
}

/** An inscribed text may hold a NUL, at which a column of text would end. */
function textOf(column: Buffer | string): string {
  return typeof column === 'string' ? column : column.toString('utf8')
}

export function outputByOid(sql: Sql, oid: number): OutputRecord | undefined {
  const row = sql.get(OUTPUT_OF, oid)
  return row && outputOf(row)
}

/** The row of the last active step of a lineage, with the columns {@link OUTPUT} and {@link STEP}, and its height as `own`. */
export function tipOf(sql: Sql, lin: number): Row | undefined {
  return sql.get(TIP_OF, lin)
}

export function outpointAt(sql: Sql, lin: number, step: number): Outpoint | undefined {
  // A lineage is identified by its first output.
  const row = step === 0 ? sql.get(OUTPOINT_OF, lin) : sql.get(STEP_OF, lin, step)
  return row && outpointOf(row)
}

/**
 * The active outputs of a lineage from a step on, towards its tip or its start; of two at one step, the better-ranked one.
 *
 * @param query.limit How many are read; fewer are left where two are at one step.
 */
export function stepsOf(
  sql: Sql,
  columns: string,
  query: { lin: number; from: number; limit: number; isBackward?: boolean },
): { rows: Row[]; isLast: boolean } {
  const { lin, from, limit, isBackward = false } = query
  const [side, order] = isBackward ? ['<=', 'desc'] : ['>=', 'asc']
  const statement = `select ${columns}, step ${AT_STEP}
    where lin = ? and step ${side} ? and out.active = 1 order by step ${order}, ${BY_RANK} limit ?`
  const found = sql.all(statement, lin, from, limit)
  return {
    rows: found.filter((row, at) => row.step !== found[at - 1]?.step),
    isLast: found.length < limit,
  }
}

export function ordinalAt(sql: Sql, outpoint: Outpoint, sequence: number): OrdinalStep | undefined {
  const found = sql.get(TIP_AT, blobOf(outpoint.txid), outpoint.vout)
  const tip = found?.tied ? { ...found, ...tipOf(sql, found.lin) } : found
  const origin: number | null = tip?.asked_origin ?? tip?.origin ?? null
  if (tip === undefined || tip.asked_carrier || origin === null) return undefined
  const step = stepAt(sequence, { origin, last: tip.step })
  if (step < origin || step > tip.step) return undefined
  const row = step === tip.step ? tip : sql.get(STEP_OF, tip.lin, step)
  if (row === undefined || row.latest === null) return undefined
  const saying = row.latest === row.oid ? row : sql.get(OUTPUT_OF, row.latest)
  // Most ordinals show their first content.
  const begin = [row, saying].find((each) => each?.step === origin)
  const first = begin === undefined ? outpointAt(sql, tip.lin, origin) : outpointOf(begin)
  if (saying === undefined || first === undefined) return undefined
  const output = outputOf(row)
  const claim = row.latestparent === null ? undefined : sql.get(CLAIM_OF, row.latestparent)
  return {
    ...{
      output,
      content: saying === row ? output : outputOf(saying),
      sequence: step - origin,
      origin: first,
    },
    ...(claim && { parent: outpointIn(claim.parent) }),
    hasMap: row.lastmap !== null,
    tip: step === tip.step,
  }
}

function stepAt(sequence: number, { origin, last }: { origin: number; last: number }): number {
  if (sequence === TIP) return last
  return sequence === ORIGIN ? origin : origin + sequence
}

/** A lineage may have any number of steps: no more than this are read at once. */
const STEPS_A_PAGE = 1000

/** The output that received a coin, where neither has a number. */
export const RECEIVER = `select oid, out.tid, ptid, pvout, ${CONTENT} ${AT_STEP}
  where ptid = ? and pvout = ? and lin is null and out.active = 1 order by ${BY_RANK} limit 1`

function followed(
  sql: Sql,
  from: Outpoint,
): { tip: Outpoint; isLast: false } | { tip: Outpoint | undefined; isLast: true } {
  const unspent = (tip: Outpoint): Outpoint | undefined =>
    spenderOf(sql, tip) === undefined ? tip : undefined
  const place = placeOf(sql, from)
  // A host that runs no `tm_ordinals` knows only the origins of names; a carrier is part of no answer.
  if (place === undefined || place.carrier) return { tip: unspent(from), isLast: true }
  if (place.lin !== null) {
    const tip = tipOf(sql, place.lin)
    return { tip: unspent(tip === undefined ? from : outpointOf(tip)), isLast: true }
  }
  let tip = from
  let at: Row = { tid: place.tid, vout: from.vout }
  for (let steps = 0; steps < STEPS_A_PAGE; steps++) {
    const next = sql.get(RECEIVER, at.tid, at.vout)
    if (next === undefined) return { tip: unspent(tip), isLast: true }
    at = next
    tip = outpointOf(next)
  }
  return { tip, isLast: false }
}
