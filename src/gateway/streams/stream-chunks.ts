import type {
  ByteRange,
  GraphReader,
  StreamChunk,
  StreamQuery,
  StreamSegment,
  StreamSummary,
} from '../../../backend/src/graph/graph-store.js'
import { UnstableReadError } from '../../../backend/src/graph/optimistic-read.js'
import { segmentOf } from '../../../backend/src/graph/stream.js'
import { wholeRange } from '../http/whole-range.js'

/**
 * Exactly the bytes of a range of a stream, in pieces. The chunks of the segments that the range stands in are walked
 * again, and bodies are read only where it needs them.
 *
 * @throws Error where a body is not whole here.
 * @throws UnstableReadError where a segment is no longer what the stream was summed up from: before any byte of that segment.
 */
export async function* streamBody({
  store,
  query,
  stream: { segments },
  range,
}: {
  store: GraphReader
  query: StreamQuery
  stream: StreamSummary
  range: ByteRange
}): AsyncGenerator<Uint8Array> {
  const end = range.from + range.length
  let start = 0
  let skipped = 0
  let chunks: AsyncIterator<StreamChunk> | undefined
  try {
    for (const segment of segments) {
      if (start >= end) return
      if (start + segment.length > range.from) {
        chunks ??= store.streams.chunks(query, skipped)[Symbol.asyncIterator]()
        for (const chunk of await segmentChunks(chunks, segment)) {
          const from = Math.max(range.from - start, 0)
          const length = Math.min(end - start, chunk.length) - from
          if (length > 0) yield* wholeRange(store.content.chunks(chunk.sha256, { from, length }), length)
          start += chunk.length
        }
      } else {
        skipped += segment.chunks
        start += segment.length
      }
    }
  } finally {
    await chunks?.return?.()
  }
}

async function segmentChunks(
  chunks: AsyncIterator<StreamChunk>,
  segment: StreamSegment,
): Promise<StreamChunk[]> {
  const read: StreamChunk[] = []
  while (read.length < segment.chunks) {
    const { done, value } = await chunks.next()
    if (done) throw changed()
    read.push(value)
  }
  if (segmentOf(read).sha256 !== segment.sha256) throw changed()
  return read
}

function changed(): UnstableReadError {
  return new UnstableReadError('the stream changed while it was read; try again')
}
