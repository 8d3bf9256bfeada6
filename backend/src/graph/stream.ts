import { createHash } from 'node:crypto'
import type { StreamChunk, StreamSegment, StreamSummary } from './graph-store.js'

/** How many chunks the first segments of a stream have; of that many segments, and of each next 64 twice as many. */
const FIRST_SEGMENT = 64

/** By its position: a few hundred segments are enough for a million chunks. */
function sizeOf(segment: number): number {
  return FIRST_SEGMENT * 2 ** Math.floor(segment / 64)
}

/** Combines chunks into a segment. */
export function segmentOf(chunks: StreamChunk[]): StreamSegment {
  const hash = createHash('sha256')
  for (const { sha256, length } of chunks) hash.update(`${sha256} ${length}\n`)
  const length = chunks.reduce((sum, chunk) => sum + chunk.length, 0)
  return { chunks: chunks.length, length, sha256: hash.digest('hex') }
}

/** Summarises a stream, without its type. Holds no more chunks in memory than a segment has. */
export async function summaryOf(
  chunks: AsyncIterable<StreamChunk>,
): Promise<Omit<StreamSummary, 'contentType'>> {
  const segments: StreamSegment[] = []
  let open: StreamChunk[] = []
  for await (const chunk of chunks) {
    open.push(chunk)
    if (open.length < sizeOf(segments.length)) continue
    segments.push(segmentOf(open))
    open = []
  }
  if (open.length > 0) segments.push(segmentOf(open))
  const hash = createHash('sha256')
  for (const { sha256 } of segments) hash.update(sha256)
  const length = segments.reduce((sum, segment) => sum + segment.length, 0)
  return { sha256: hash.digest('hex'), length, segments }
}
