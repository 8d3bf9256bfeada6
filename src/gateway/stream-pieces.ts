import type {
  ByteRange,
  ContentReader,
  StreamQuery,
  StreamReader,
  StreamSummary,
} from '../../backend/src/graph/graph-store.js'
import { ChunkHash } from '../../backend/src/graph/stream.js'
import { wholeRange } from './whole-range.js'

/**
 * Exactly the bytes of a range of a stream, in pieces. The chunks are walked again up to where the range ends, and
 * bodies are read only where it needs them.
 *
 * @throws Error where a body is not whole here, and where the chunks are no longer those that the stream was summed up
 *   from: of their number and hash that is known only once the last one is read, and so before any byte of that.
 */
export async function* streamPieces({
  store,
  query,
  stream,
  range,
}: {
  store: ContentReader & StreamReader
  query: StreamQuery
  stream: StreamSummary
  range: ByteRange
}): AsyncGenerator<Uint8Array> {
  const end = range.from + range.length
  const hash = new ChunkHash()
  let chunks = 0
  let start = 0
  for await (const chunk of store.streamChunks(query)) {
    hash.add(chunk)
    if (++chunks === stream.chunks && hash.digest() !== stream.sha256) throw changed()
    const from = Math.max(range.from - start, 0)
    const length = Math.min(end - start, chunk.length) - from
    if (length > 0) yield* wholeRange(store.contentPieces(chunk.sha256, { from, length }), length)
    start += chunk.length
    if (start >= end || chunks === stream.chunks) break
  }
  if (start < end) throw changed()
}

function changed(): Error {
  return new Error('the chunks of a stream are not what they were when it was summed up')
}
