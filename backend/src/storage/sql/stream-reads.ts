import { setImmediate } from 'node:timers/promises'
import type { StreamChunk, StreamQuery, StreamSummary } from '../../graph/graph-store.js'
import { isChunkType, summaryOf } from '../../graph/stream.js'
import { UNTYPED } from '../../protocol/media-type.js'
import type { Outpoint } from '../../protocol/outpoint.js'
import { bytesOf, hexOf, outpointOf, outpointPair } from './columns.js'
import type { Row, SqlReader } from './sql-reader.js'

/** A stream may have any number of chunks: no more of them are held at once. */
const ROWS_A_PAGE = 500
/** Most outputs start no stream: a few rows tell. */
const FIRST_ROWS = 10

/** Along a lineage: to its tip, or to its first output. */
type Direction = 'onwards' | 'back'

interface Step {
  satoshis: number
  content?: StreamChunk & { contentType: string }
}

/** See `StreamReader.stream`. */
export async function streamSummary(
  reader: SqlReader,
  query: StreamQuery,
): Promise<StreamSummary | undefined> {
  const { chunks, ...bytes } = await summaryOf(streamChunks(reader, query))
  if (chunks === 0) return undefined
  return { contentType: await streamType(reader, query), chunks, ...bytes }
}

/** See `StreamReader.streamChunks`. */
export async function* streamChunks(
  reader: SqlReader,
  { outpoint, chunkTypes }: StreamQuery,
): AsyncGenerator<StreamChunk> {
  let isFirst = true
  for await (const { satoshis, content } of stepsFrom(reader, outpoint, 'onwards')) {
    if (content === undefined) return
    const { contentType, ...chunk } = content
    if (!isFirst && !isChunkType(contentType, chunkTypes)) return
    yield chunk
    if (satoshis !== 1) return
    isFirst = false
  }
}

/** The type of the chunk that the stream of an output starts with, which may stand before that output. */
async function streamType(reader: SqlReader, { outpoint, chunkTypes }: StreamQuery): Promise<string> {
  for await (const { satoshis, content } of stepsFrom(reader, outpoint, 'back')) {
    if (content === undefined) return UNTYPED
    if (!isChunkType(content.contentType, chunkTypes)) return content.contentType
    if (satoshis !== 1) return UNTYPED
  }
  return UNTYPED
}

const PAGE = (compared: '>=' | '<=', order: 'asc' | 'desc'): string => `
  select step.txid, step.vout, step.satoshis, step.content_sha256, step.content_type, step.content_length,
    step.step - place.step as ahead
  from graph_outputs as place join graph_outputs as step
    on step.lineage_txid = place.lineage_txid and step.lineage_vout = place.lineage_vout
    and step.step ${compared} place.step
  where place.txid = ? and place.vout = ? order by step.step ${order} limit ?`

const PAGES: Record<Direction, string> = { onwards: PAGE('>=', 'asc'), back: PAGE('<=', 'desc') }

/**
 * The outputs of a lineage from one on, itself included, as far as none is missing. Each page starts from where the last
 * one ended, in one statement: that output's place is what it is then, as steps are counted anew when what was missing
 * before them comes.
 *
 * @throws Error where an output is gone by the time that the next page starts from it.
 */
async function* stepsFrom(reader: SqlReader, outpoint: Outpoint, direction: Direction): AsyncGenerator<Step> {
  for (let from: Outpoint | undefined; ; ) {
    const limit = from === undefined ? FIRST_ROWS : ROWS_A_PAGE
    const rows = await reader.all(PAGES[direction], [...outpointPair(from ?? outpoint), limit])
    if (from !== undefined && rows.length === 0)
      throw new Error('an output is gone while its lineage is read')
    for (const [at, row] of rows.entries()) {
      if (Math.abs(Number(row.ahead)) !== at) return
      // What a page starts from was the last of the page before.
      if (at > 0 || from === undefined) yield stepOf(row)
    }
    if (rows.length < limit) return
    from = outpointOf(rows.at(-1))
    // The embedded store answers at once: without this, nobody else would be answered until the end of a long stream.
    await setImmediate()
  }
}

function stepOf(row: Row): Step {
  return {
    satoshis: Number(row.satoshis),
    ...(row.content_sha256 !== null && {
      content: {
        sha256: hexOf(row.content_sha256),
        length: Number(row.content_length),
        contentType: Buffer.from(bytesOf(row.content_type)).toString('utf8'),
      },
    }),
  }
}
