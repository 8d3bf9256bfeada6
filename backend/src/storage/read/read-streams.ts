import type { StreamChunk, StreamQuery, StreamSummary, StreamsReader } from '../../graph/graph-store.js'
import { UnstableReadError } from '../../graph/optimistic-read.js'
import { summaryOf } from '../../graph/stream.js'
import { yieldToEventLoop } from '../../graph/yield-to-event-loop.js'
import { UNTYPED } from '../../protocol/media-type.js'
import type { Outpoint } from '../../protocol/outpoint.js'
import { outpointOf } from '../rows/columns.js'
import { contentOf } from '../rows/record-rows.js'
import type { Row } from '../rows/rows.js'

/** A stream may have any number of chunks: no more than this are in memory at once. */
const ROWS_A_PAGE = 500
/** Most outputs start no stream, which a few rows show. */
const FIRST_ROWS = 10

/** Along a lineage: towards its tip, or towards its first output. */
export type Direction = 'forward' | 'backward'

/** At most `limit` outputs of a lineage, starting `from` steps away from an output. */
export interface StreamPageQuery {
  outpoint: Outpoint
  direction: Direction
  from: number
  limit: number
}

export interface Streams {
  /**
   * The outputs, each with the number of steps that it is `away` from the one asked about. Looks up that output's place along
   * with each page: steps are renumbered when missing outputs arrive before them.
   */
  streamPage(query: StreamPageQuery): Promise<Row[]>
}

interface Step {
  satoshis: number
  content?: StreamChunk & { contentType: string }
}

/** The streams of a store. */
export function streamsIn(rows: Streams): StreamsReader {
  return {
    summary: (query) => streamSummary(rows, query),
    chunks: (query, from) => streamChunks(rows, query, from),
  }
}

async function streamSummary(streams: Streams, query: StreamQuery): Promise<StreamSummary | undefined> {
  const summary = await summaryOf(streamChunks(streams, query))
  if (summary.segments.length === 0) return undefined
  return { ...summary, contentType: await streamType(streams, query) }
}

async function* streamChunks(
  streams: Streams,
  { outpoint, chunkTypes, signal }: StreamQuery,
  from = 0,
): AsyncGenerator<StreamChunk> {
  let isFirst = from === 0
  for await (const page of stepsFrom(streams, { outpoint, direction: 'forward', from, signal })) {
    for (const { satoshis, content } of page) {
      if (content === undefined) return
      const { contentType, ...chunk } = content
      if (!isFirst && !chunkTypes.includes(contentType)) return
      yield chunk
      if (satoshis !== 1) return
      isFirst = false
    }
  }
}

/** The type of the first chunk of an output's stream, which may come before that output. */
async function streamType(streams: Streams, { outpoint, chunkTypes, signal }: StreamQuery): Promise<string> {
  for await (const page of stepsFrom(streams, { outpoint, direction: 'backward', signal })) {
    for (const { satoshis, content } of page) {
      if (content === undefined) return UNTYPED
      if (!chunkTypes.includes(content.contentType)) return content.contentType
      if (satoshis !== 1) return UNTYPED
    }
  }
  return UNTYPED
}

/**
 * The outputs of a lineage from one on, including it, up to the first gap, a page at a time.
 *
 * @param walk.from How many to skip.
 * @throws UnstableReadError if an output is gone when the next page is read.
 */
async function* stepsFrom(
  streams: Streams,
  walk: { outpoint: Outpoint; direction: Direction; from?: number; signal: AbortSignal | undefined },
): AsyncGenerator<Step[]> {
  const { outpoint, direction, from: skipped = 0, signal } = walk
  let read = skipped
  for (let limit = FIRST_ROWS; ; limit = ROWS_A_PAGE) {
    // Read the last of the previous page again: if it is gone, this is not the end of the stream.
    const from = Math.max(read - 1, 0)
    const rows = await streams.streamPage({ outpoint, direction, from, limit })
    const gap = rows.findIndex(({ away }, at) => Math.abs(away) !== from + at)
    const unbroken = gap === -1 ? rows : rows.slice(0, gap)
    if (read > skipped && unbroken.length === 0)
      throw new UnstableReadError('an output was removed while its lineage was read; try again')
    yield unbroken.slice(read - from).map(stepOf)
    if (unbroken.length < limit) return
    read = from + limit
    // The embedded store answers synchronously: without this, a long stream would block the thread to its end.
    await yieldToEventLoop()
    signal?.throwIfAborted()
  }
}

function stepOf(row: Row): Step {
  const content = contentOf(row)
  return {
    satoshis: Number(row.satoshis),
    ...(content && { content: { outpoint: outpointOf(row), ...content } }),
  }
}
