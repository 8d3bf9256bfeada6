import { pipeline } from 'node:stream/promises'
import type { Response } from 'express'

/** Sends with backpressure; a reader that leaves stops the reading, and is no error. */
export async function sendPieces(
  response: Response,
  pieces: AsyncIterable<Uint8Array | string>,
): Promise<void> {
  try {
    await pipeline(pieces, response)
  } catch (error) {
    if (!response.destroyed || response.writableEnded) throw error
    if (error instanceof Error && 'code' in error && error.code === 'ERR_STREAM_PREMATURE_CLOSE') return
    throw error
  }
}
