import { LRUCache } from 'lru-cache'
import {
  type ByteRange,
  CHUNK_BYTES,
  type ContentReader,
  SHORT_BODY,
} from '../../../backend/src/graph/graph-store.js'

/** How many chunks of a longer body may be in memory: those of the first mebibyte. */
const CHUNKS_OF_BODY = 4
/** Of how many chunks it is known that they were read once. */
const READ_ONCE = 1000

/** Short bodies, and first chunks of longer ones that were read twice: most are not. A hash says for good what they are. */
export class Bodies {
  /** Since the start. */
  readonly use = { hits: 0, misses: 0 }
  private readonly chunks: LRUCache<string, Uint8Array>
  private readonly readOnce = new LRUCache<string, true>({ max: READ_ONCE })

  /** @param maxBytes That all take together. */
  constructor(maxBytes: number) {
    this.chunks = new LRUCache({
      maxSize: Math.max(Math.floor(maxBytes), 1),
      sizeCalculation: ({ length }) => Math.max(length, 1),
    })
  }

  /** The bodies of a store, from memory if they are there. */
  of(content: ContentReader): ContentReader {
    return {
      chunk: (sha256, position) => this.chunk(content, sha256, position),
      chunks: (sha256, range) => this.chunksOf(content, sha256, range),
    }
  }

  clear(): void {
    this.chunks.clear()
    this.readOnce.clear()
  }

  private chunk(content: ContentReader, sha256: string, position: number): Uint8Array | undefined {
    const key = position === 0 ? sha256 : `${sha256} ${position}`
    const known = this.chunks.get(key)
    this.use[known === undefined ? 'misses' : 'hits']++
    const chunk = known ?? content.chunk(sha256, position)
    if (known !== undefined || chunk === undefined || position >= CHUNKS_OF_BODY) return chunk
    const isShort = position === 0 && chunk.length <= SHORT_BODY
    if (isShort || this.readOnce.delete(key)) this.chunks.set(key, chunk)
    else this.readOnce.set(key, true)
    return chunk
  }

  /** What comes after the chunks that may be in memory is read as the store reads it: it may have other bounds. */
  private *chunksOf(
    content: ContentReader,
    sha256: string,
    { from, length }: ByteRange = { from: 0, length: Number.POSITIVE_INFINITY },
  ): Generator<Uint8Array> {
    const end = from + length
    let at = from
    for (; at < end && at < CHUNKS_OF_BODY * CHUNK_BYTES; at += CHUNK_BYTES - (at % CHUNK_BYTES)) {
      const position = Math.floor(at / CHUNK_BYTES)
      const chunk = this.chunk(content, sha256, position)
      if (chunk === undefined) return
      const start = position * CHUNK_BYTES
      yield chunk.subarray(at - start, end - start)
    }
    if (at < end) yield* content.chunks(sha256, { from: at, length: end - at })
  }
}
