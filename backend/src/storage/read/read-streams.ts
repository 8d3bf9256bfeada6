import type { StreamChunk, StreamQuery, StreamSummary, StreamsReader } from '../../graph/graph-store.js'
import { UnstableReadError } from '../../graph/optimistic-read.js'
import { isChunkType, summaryOf, typed } from '../../graph/stream.js'
import { yieldToEventLoop } from '../../graph/yield-to-event-loop.js'
import { UNTYPED } from '../../protocol/media-type.js'
import type { Outpoint } from '../../protocol/outpoint.js'
import { outpointOf } from '../rows/columns.js'
import { contentOf, type OutputRow } from '../rows/record-rows.js'

/** A stream may have any number of chunks: no more of them are held at once. */
const ROWS_A_PAGE = 500
/** Most outputs start no stream: a few rows tell. */
const FIRST_ROWS = 10

/** Along a lineage: to its tip, or to its first output. */
export type Direction = 'onwards' | 'back'

/** An output of a lineage, and how many steps it is away from another. */
export interface StreamRow
  extends Pick<
    OutputRow,
    'txid' | 'vout' | 'satoshis' | 'content_sha256' | 'content_type' | 'content_length'
  > {
  away: number
}

/** A page of a lineage from so many steps away from an output on. */
export interface StreamPageQuery {
  outpoint: Outpoint
  direction: Direction
  from: number
  limit: number
}

export interface Streams {
  /** The output is found anew for each page, in one step with it, as steps are counted anew when what was missing before them comes. */
  streamPage(query: StreamPageQuery): Promise<StreamRow[]>
}

interface Step {
  satoshis: number
  content?: StreamChunk & { contentType: string }
}

/** The streams of a store, on any engine. */
export function streamsIn(rows: Streams): StreamsReader {
  return {
    summary: (query) => streamSummary(rows, query),
    chunks: (query, from) => streamChunks(rows, query, from),
  }
}

async function streamSummary(streams: Streams, query: StreamQuery): Promise<StreamSummary | undefined> {
  const summary = await summaryOf(streamChunks(streams, query))
  if (summary.segments.length === 0) return undefined
  return typed(summary, await streamType(streams, query))
}

async function* streamChunks(
  streams: Streams,
  { outpoint, chunkTypes, signal }: StreamQuery,
  from = 0,
): AsyncGenerator<StreamChunk> {
  let isFirst = from === 0
  for await (const page of stepsFrom(streams, { outpoint, direction: 'onwards', from, signal })) {
    for (const { satoshis, content } of page) {
      if (content === undefined) return
      const { contentType, ...chunk } = content
      if (!isFirst && !isChunkType(contentType, chunkTypes)) return
      yield chunk
      if (satoshis !== 1) return
      isFirst = false
    }
  }
}

/** The type of the chunk that the stream of an output starts with, which may stand before that output. */
async function streamType(streams: Streams, { outpoint, chunkTypes, signal }: StreamQuery): Promise<string> {
  for await (const page of stepsFrom(streams, { outpoint, direction: 'back', signal })) {
    for (const { satoshis, content } of page) {
      if (content === undefined) return UNTYPED
      if (!isChunkType(content.contentType, chunkTypes)) return content.contentType
      if (satoshis !== 1) return UNTYPED
    }
  }
  return UNTYPED
}

/**
 * The outputs of a lineage from one on, itself included, as far as none is missing, a page at a time; with `from`, all
 * but so many of them.
 *
 * @throws UnstableReadError where an output that was read is gone by the time that the next page is.
 */
async function* stepsFrom(
  streams: Streams,
  walk: { outpoint: Outpoint; direction: Direction; from?: number; signal: AbortSignal | undefined },
): AsyncGenerator<Step[]> {
  const { outpoint, direction, from: skipped = 0, signal } = walk
  let read = skipped
  for (let limit = FIRST_ROWS; ; limit = ROWS_A_PAGE) {
    // The last of the page before is read again: without it, what comes behind would be taken for the end.
    const from = Math.max(read - 1, 0)
    const rows = await streams.streamPage({ outpoint, direction, from, limit })
    const gap = rows.findIndex(({ away }, at) => Math.abs(away) !== from + at)
    const unbroken = gap === -1 ? rows : rows.slice(0, gap)
    if (read > skipped && unbroken.length === 0)
      throw new UnstableReadError('an output is gone while its lineage is read')
    yield unbroken.slice(read - from).map(stepOf)
    if (unbroken.length < limit) return
    read = from + limit
    // The embedded store answers at once: without this, nobody else would be answered until the end of a long stream.
    await yieldToEventLoop()
    signal?.throwIfAborted()
  }
}

function stepOf(row: StreamRow): Step {
  const content = contentOf(row)
  return {
    satoshis: Number(row.satoshis),
    ...(content && { content: { outpoint: outpointOf(row), ...content } }),
  }
}
