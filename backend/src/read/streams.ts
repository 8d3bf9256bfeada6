import type { Row, Sql } from '../facts/connection.js'
import { BlockedError, type BlockedKind } from '../graph/blocklist.js'
import { UnstableReadError } from '../graph/errors.js'
import { TIP } from '../graph/records.js'
import { type StreamChunk, type StreamQuery, type StreamSummary, summaryOf } from '../graph/stream.js'
import { yieldToEventLoop } from '../graph/yield-to-event-loop.js'
import { UNTYPED } from '../protocol/media-type.js'
import { formatOutpoint, type Outpoint } from '../protocol/outpoint.js'
import type { Guard } from './guard.js'
import { CONTENT, contentOf, ordinalAt, type Place, placeOf, RECEIVER, stepsOf } from './ordinals.js'
import { outpointOf, type Reader } from './reader.js'

/** Streams: the content of an ordinal, step after step. */
export class Streams {
  /** For checked streams: the kind of their block, and the version of the blocklist. */
  private readonly checked = new WeakMap<StreamSummary, { version: number; kind: BlockedKind | undefined }>()

  constructor(
    private readonly reader: Reader,
    private readonly guard: Guard,
    private readonly summaries: (
      query: StreamQuery,
      read: () => Promise<StreamSummary | undefined>,
    ) => Promise<StreamSummary | undefined>,
  ) {}

  /**
   * The stream that starts with an output; undefined if the store does not hold it or it has no content. Anything blocked in a
   * stream blocks all of it, before the first byte of any part.
   *
   * @throws UnstableReadError if reorganisations keep happening.
   */
  async summary(query: StreamQuery): Promise<StreamSummary | undefined> {
    const { guard, reader } = this
    guard.refuse([query.outpoint])
    const stream = await this.summaries(query, () =>
      reader.acrossSnapshots(() => streamSummary(reader, query)),
    )
    if (stream === undefined) return undefined
    if (!guard.isOpen) await this.refuseBlocked(stream, query)
    const tip = guard.checkTip && reader.answer((sql) => ordinalAt(sql, query.outpoint, TIP))
    // An incomplete stream would look complete.
    if (tip?.output.content !== undefined) guard.checkTip?.(tip)
    return stream
  }

  /**
   * The chunks of a stream in order, read a page at a time: the content of the output itself and of its ordinal's next steps, up
   * to a step that is missing, has no content, or is of a type that is no chunk's. An output of another value than 1 satoshi is a
   * stream of one.
   *
   * @param from How many chunks to leave out; the caller knows that they exist.
   * @param count How many chunks the caller wants, if it knows: then no page has more.
   */
  async *chunks(query: StreamQuery, from?: number, count?: number): AsyncGenerator<StreamChunk> {
    for await (const chunk of streamChunks(this.reader, query, from, count)) {
      const kind = this.blockedBy(chunk)
      if (kind !== undefined) throw new BlockedError(kind)
      yield chunk
    }
  }

  private async refuseBlocked(stream: StreamSummary, query: StreamQuery): Promise<void> {
    const { version } = this.guard.list
    let seen = this.checked.get(stream)
    if (seen?.version !== version) {
      let kind: BlockedKind | undefined
      for await (const chunk of streamChunks(this.reader, query)) {
        kind = this.blockedBy(chunk)
        if (kind !== undefined) break
      }
      seen = { version, kind }
      this.checked.set(stream, seen)
    }
    if (seen.kind !== undefined) throw new BlockedError(seen.kind)
  }

  /** The kind of block of a chunk. Names need no check: the origin of a name starts a lineage, so no later chunk is one. */
  private blockedBy({ outpoint, sha256 }: StreamChunk): BlockedKind | undefined {
    const { list } = this.guard
    if (list.has('outpoint', formatOutpoint(outpoint))) return 'outpoint'
    return list.has('content', sha256) ? 'content' : undefined
  }
}

async function streamSummary(reader: Reader, query: StreamQuery): Promise<StreamSummary | undefined> {
  const summary = await summaryOf(streamChunks(reader, query))
  if (summary.segments.length === 0) return undefined
  return { ...summary, contentType: await streamType(reader, query) }
}

async function* streamChunks(
  reader: Reader,
  { outpoint, chunkTypes, signal }: StreamQuery,
  from = 0,
  count?: number,
): AsyncGenerator<StreamChunk> {
  let isFirst = from === 0
  for await (const row of steps(reader, { outpoint, signal, from, count }, FORWARD)) {
    const content = contentOf(row)
    if (content === undefined) return
    const { contentType, ...chunk } = content
    if (!isFirst && !chunkTypes.includes(contentType)) return
    yield { outpoint: outpointOf(row), ...chunk }
    isFirst = false
  }
}

/** The type of the first chunk of an output's stream, which may come before that output. */
async function streamType(reader: Reader, { outpoint, chunkTypes, signal }: StreamQuery): Promise<string> {
  for await (const row of steps(reader, { outpoint, signal }, BACKWARD)) {
    const content = contentOf(row)
    if (content === undefined) return UNTYPED
    if (!chunkTypes.includes(content.contentType)) return content.contentType
  }
  return UNTYPED
}

/** A stream may have any number of chunks: no more than this are in memory at once. */
const ROWS_A_PAGE = 500
/** Most outputs start no stream, which a few rows show. */
const FIRST_ROWS = 10

/** A direction along a lineage: towards its tip, or towards its first output. Without numbers, it leads from coin to coin. */
interface Direction {
  isBackward: boolean
  /** The step after a row; parameters: `at`. */
  next: string
  at: (row: Row) => [number | null, number | null]
}

const STEP = `oid, out.tid, ptid, pvout, ${CONTENT}`
const ROW_OF = `select ${STEP} from out cross join tx on tx.id = tid where oid = ?`
const FORWARD: Direction = { isBackward: false, next: RECEIVER, at: ({ tid, vout }) => [tid, vout] }
const BACKWARD: Direction = {
  isBackward: true,
  next: `select ${STEP} from out cross join tx on tx.id = tid where tid = ? and vout = ? and out.active = 1`,
  at: ({ ptid, pvout }) => [ptid, pvout],
}

/**
 * The outputs of a lineage from one on, including it, up to the first gap, read a page at a time.
 *
 * @param walk.from How many to skip.
 * @param walk.count How many are wanted, if that is known.
 * @throws UnstableReadError if an output is gone when the next page is read.
 */
async function* steps(
  reader: Reader,
  walk: { outpoint: Outpoint; from?: number; count?: number | undefined; signal: AbortSignal | undefined },
  direction: Direction,
): AsyncGenerator<Row> {
  const { outpoint, from = 0, count, signal } = walk
  const most = Math.min(count ?? ROWS_A_PAGE, ROWS_A_PAGE)
  let reached: Reached | undefined
  for (let away = from, limit = count === undefined ? FIRST_ROWS : most; ; limit = most) {
    const page = reader.answer((sql) => {
      const place = placeOf(sql, outpoint)
      if (place === undefined) return undefined
      if (place.lin !== null) return numberedPage(sql, direction, { lin: place.lin, place, away, limit })
      return coinPage(sql, direction, {
        ...{ away, limit },
        reached: reached ?? { row: sql.get(ROW_OF, place.oid), away: 0 },
      })
    })
    if (page === undefined) {
      if (away === from) return
      throw new UnstableReadError('an output was removed while its lineage was read; try again')
    }
    yield* page.rows
    if (page.isLast) return
    reached = page.reached
    away += page.rows.length
    // SQLite answers synchronously: without this, a long stream would hold the thread to its end.
    await yieldToEventLoop()
    signal?.throwIfAborted()
  }
}

/** How far a lineage without numbers was followed. */
interface Reached {
  row: Row | undefined
  away: number
}

interface Page {
  rows: Row[]
  isLast: boolean
  reached?: Reached
}

function numberedPage(
  sql: Sql,
  { isBackward }: Direction,
  { lin, place, away, limit }: { lin: number; place: Place; away: number; limit: number },
): Page {
  const sign = isBackward ? -1 : 1
  const from = place.step + sign * away
  const page = stepsOf(sql, CONTENT, { lin, from, limit, isBackward })
  const gap = page.rows.findIndex(({ step }, at) => step !== from + sign * at)
  return gap < 0 ? page : { rows: page.rows.slice(0, gap), isLast: true }
}

function coinPage(
  sql: Sql,
  { next, at }: Direction,
  { reached, away, limit }: { reached: Reached; away: number; limit: number },
): Page {
  const rows: Row[] = []
  let { row, away: position } = reached
  if (row !== undefined && position >= away) rows.push(row)
  while (row !== undefined && rows.length < limit) {
    const [tid, vout] = at(row)
    row = tid === null || vout === null ? undefined : sql.get(next, tid, vout)
    position++
    if (row !== undefined && position >= away) rows.push(row)
  }
  return { rows, isLast: row === undefined, reached: { row, away: position } }
}
