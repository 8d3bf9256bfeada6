import { createHash } from 'node:crypto'
import type { Outpoint } from '../protocol/outpoint.js'

/** The stream of an output: its own content, and the chunks that its ordinal continues with (`docs/spec/protocol.md`, Ordinals). */
export interface StreamQuery {
  outpoint: Outpoint
  /** The content types of further chunks, each an essence in lower case (`Profile`). */
  chunkTypes: readonly string[]
  /** Aborts the summary when its reader has left. */
  signal?: AbortSignal
}

/** A chunk of a stream: its outpoint and its body. `sha256` is hex. */
export interface StreamChunk {
  outpoint: Outpoint
  sha256: string
  length: number
}

/** Consecutive chunks of a stream: their number, total bytes, and the hash of their hashes and lengths in hex. */
export interface StreamSegment {
  chunks: number
  length: number
  sha256: string
}

/** The summary of a stream, known before its first byte is sent. */
export interface StreamSummary {
  /** The type of the first chunk of the ordinal's stream, as inscribed; `application/octet-stream` if unknown. */
  contentType: string
  /** In bytes. */
  length: number
  /** The chunks in order, in groups, so that a range is found without walking from the first. */
  segments: StreamSegment[]
  /** Hash of the segments' hashes and the type, in hex: it changes with the bytes and with the type. */
  sha256: string
}

/** Chunks in each of the first 64 segments of a stream; each further 64 segments have twice as many. */
const FIRST_SEGMENT = 64

/** Chunks in a segment, by its position: a few hundred segments are enough for a million chunks. */
function sizeOf(segment: number): number {
  return FIRST_SEGMENT * 2 ** Math.floor(segment / 64)
}

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
