import { LRUCache } from 'lru-cache'
import { type BodyMemory, SHORT_BODY } from '../../../backend/src/read/content.js'

/** How many chunks of a longer body may be in memory: the first mebibyte. */
const CHUNKS_OF_BODY = 4
const READ_ONCE = 1000

/** The largest share of the memory for a body made by patches. */
const MAX_SHARE = 1 / 4

/** Short bodies, bodies made by patches, and first chunks of longer ones that were read twice. Keys are hashes: nothing goes stale. */
export class Bodies implements BodyMemory {
  readonly chunksOfBody = CHUNKS_OF_BODY
  readonly use = { hits: 0, misses: 0 }
  private readonly chunks: LRUCache<string, Uint8Array>
  private readonly readOnce = new LRUCache<string, true>({ max: READ_ONCE })

  constructor(private readonly maxBytes: number) {
    this.chunks = new LRUCache({
      maxSize: Math.max(Math.floor(maxBytes), 1),
      sizeCalculation: ({ length }) => Math.max(length, 1),
    })
  }

  clear(): void {
    this.chunks.clear()
    this.readOnce.clear()
  }

  chunk(sha256: string, position: number, read: () => Uint8Array | undefined): Uint8Array | undefined {
    const key = position === 0 ? sha256 : `${sha256} ${position}`
    const known = this.chunks.get(key)
    this.use[known === undefined ? 'misses' : 'hits']++
    const chunk = known ?? read()
    if (known !== undefined || chunk === undefined || position >= this.chunksOfBody) return chunk
    const isShort = position === 0 && chunk.length <= SHORT_BODY
    if (isShort || this.readOnce.delete(key)) this.chunks.set(key, chunk)
    else this.readOnce.set(key, true)
    return chunk
  }

  made(key: string): Uint8Array | undefined {
    const body = this.chunks.get(key)
    this.use[body === undefined ? 'misses' : 'hits']++
    return body
  }

  keepMade(key: string, body: Uint8Array): void {
    if (body.length <= this.maxBytes * MAX_SHARE) this.chunks.set(key, body)
  }
}
