import type { Profile } from '../../backend/src/protocol/profile.js'
import {
  checkLock,
  contentTag,
  contentTypeOf,
  hashTag,
  inscribe,
  PublishError,
  type PublishOutput,
} from './inscribe.js'

/** Bytes of a chunk where nothing else is asked for (service.md 8). */
export const DEFAULT_STREAM_CHUNK_SIZE = 1024 * 1024

/** What of a profile a stream is written with. */
export type StreamProfile = Pick<Profile, 'streamMarker' | 'streamChunkContentTypes'>

export interface PublishFile {
  /** Says the content type by its extension, and is not published. */
  name: string
  bytes: Uint8Array
  /** The owner's locking script. */
  lock: Uint8Array
  /** Instead of the one that the name says. */
  contentType?: string
}

/** How a file is to be cut. */
export interface StreamOptions {
  profile: StreamProfile
  /** Bytes of a chunk; 1 MiB unless set. */
  streamChunkSize?: number
}

/**
 * Lays a file out as one inscription, tagged `sha256:<hash>`.
 *
 * @throws PublishError `BAD_LOCK`, `BAD_CONTENT_TYPE`.
 */
export function layOutFile({
  name,
  bytes,
  lock,
  contentType = contentTypeOf(name),
}: PublishFile): PublishOutput {
  checkLock(lock)
  return inscribe({ lock, contentType, body: bytes, tags: [contentTag(bytes)] })
}

/**
 * Lays a file out as a stream (service.md 2.5 and 4.3): steps in the order of their transactions, each of which spends
 * the output of the step before into its own. A file that fits one chunk, an empty one too, is a stream of one step.
 * Each is tagged `sha256:<hash of the whole file>` and `stream-i:<index>`.
 *
 * @throws PublishError `BAD_CHUNK_SIZE` for one that is no whole number from 1 on, `BAD_LOCK`, `BAD_CONTENT_TYPE`.
 */
export function layOutStream(file: PublishFile & StreamOptions): PublishOutput[] {
  const { bytes, lock, profile, contentType = contentTypeOf(file.name) } = file
  const chunkSize = checkedChunkSize(file.streamChunkSize)
  checkLock(lock)
  const tag = contentTag(bytes)
  return Array.from({ length: streamChunkCount(bytes.length, chunkSize) }, (_, index) => {
    const chunk = bytes.subarray(index * chunkSize, (index + 1) * chunkSize)
    return chunkOutput({ lock, profile, contentType, tag, index, chunk })
  })
}

/**
 * Lays a file out as the options of the reference minting tool say (service.md 4.3): as a stream with `stream: true`, in
 * chunks of 1 MiB, or with a `streamChunkSize`; with neither, as one inscription, which is then the only step.
 *
 * @throws PublishError as {@link layOutStream} and {@link layOutFile} do.
 */
export function layOut(file: PublishFile & StreamOptions & { stream?: boolean }): PublishOutput[] {
  const { stream = file.streamChunkSize !== undefined } = file
  return stream ? layOutStream(file) : [layOutFile(file)]
}

/** How many chunks a stream of so many bytes has: one at least. */
export function streamChunkCount(length: number, chunkSize = DEFAULT_STREAM_CHUNK_SIZE): number {
  return Math.max(1, Math.ceil(length / chunkSize))
}

/**
 * Lays out one chunk, for who has not the whole file in memory: the same as that step of {@link layOutStream}.
 *
 * @param step.index From 0.
 * @param step.sha256 The hash of the whole file, 32 bytes.
 * @throws PublishError `BAD_LOCK`, `BAD_CONTENT_TYPE`.
 */
export function layOutStreamChunk(step: {
  name: string
  chunk: Uint8Array
  index: number
  sha256: Uint8Array
  lock: Uint8Array
  profile: StreamProfile
  contentType?: string
}): PublishOutput {
  checkLock(step.lock)
  const { contentType = contentTypeOf(step.name) } = step
  return chunkOutput({ ...step, contentType, tag: hashTag(step.sha256) })
}

/** Chunk 0 says what the whole is, the others that they go on with it. */
function chunkOutput(step: {
  lock: Uint8Array
  profile: StreamProfile
  contentType: string
  tag: string
  index: number
  chunk: Uint8Array
}): PublishOutput {
  const { lock, profile, index } = step
  const [next = ''] = profile.streamChunkContentTypes
  const contentType = index === 0 ? `${step.contentType};${profile.streamMarker}` : next
  return inscribe({ lock, contentType, body: step.chunk, tags: [step.tag, `stream-i:${index}`] })
}

function checkedChunkSize(size = DEFAULT_STREAM_CHUNK_SIZE): number {
  if (Number.isSafeInteger(size) && size > 0) return size
  throw new PublishError('BAD_CHUNK_SIZE', `a chunk has a whole number of bytes from 1 on, not ${size}`)
}
