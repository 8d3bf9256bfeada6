import { createHash } from 'node:crypto'
import { essenceOf } from '../protocol/media-type.js'
import type { StreamChunk, StreamSummary } from './graph-store.js'

/**
 * Whether content goes on a stream: its type is one of a profile's chunk types, by its essence, so in either case of
 * letters and whatever its parameters (protocol 1).
 */
export function isChunkType(contentType: string, chunkTypes: readonly string[]): boolean {
  return chunkTypes.includes(essenceOf(contentType))
}

/** Tells streams apart by their chunks, one after the other: none of them is held. */
export class ChunkHash {
  private readonly hash = createHash('sha256')

  add({ sha256, length }: StreamChunk): void {
    this.hash.update(`${sha256} ${length}\n`)
  }

  /** Of all chunks so far, in hex; nothing can be added after it. */
  digest(): string {
    return this.hash.digest('hex')
  }
}

/** What is said of a stream before its first byte; its type is another matter. */
export async function summaryOf(
  chunks: AsyncIterable<StreamChunk>,
): Promise<Omit<StreamSummary, 'contentType'>> {
  const hash = new ChunkHash()
  let length = 0
  let count = 0
  for await (const chunk of chunks) {
    hash.add(chunk)
    length += chunk.length
    count++
  }
  return { sha256: hash.digest(), length, chunks: count }
}
