import { pipeline } from 'node:stream/promises'
import type { Response } from 'express'
import { TimeSlice } from '../../../backend/src/graph/yield-to-event-loop.js'

/**
 * Sends with backpressure; a reader that leaves stops the reading, and is no error. The first piece is read before the
 * head is out: what fails until then still gets an answer, where later only a broken connection can tell. Where it is all
 * there is, as of most bodies, there is nothing to stream.
 *
 * @param body.length In bytes, where it is known.
 */
export async function sendChunks<BlobChunk extends Uint8Array | string>(
  response: Response,
  { pieces, length }: { pieces: AsyncGenerator<BlobChunk>; length?: number },
): Promise<void> {
  const first = await pieces.next()
  const isAll = first.done || first.value.length === length
  if (response.destroyed || isAll) await pieces.return(undefined)
  if (response.destroyed) return
  if (isAll) {
    response.end(first.value)
    return
  }
  try {
    await pipeline(resumed(first, pieces), response)
  } catch (error) {
    const left = response.destroyed && !response.writableEnded
    // By its code alone: Node's own errors are of no class of ours, and of another realm under jest.
    if (!left || (error as { code?: unknown }).code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error
  }
}

/** The embedded store answers at once, and so does a socket with room: others are answered between the pieces. */
async function* resumed<BlobChunk>(first: IteratorResult<BlobChunk>, rest: AsyncGenerator<BlobChunk>) {
  if (first.done) return
  yield first.value
  const slice = new TimeSlice()
  for await (const piece of rest) {
    yield piece
    await slice.yieldIfOver()
  }
}
