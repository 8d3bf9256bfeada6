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

/** The default chunk size in bytes. */
export const DEFAULT_STREAM_CHUNK_SIZE = 1024 * 1024

export type StreamProfile = Pick<Profile, 'streamMarker' | 'streamChunkContentTypes'>

export interface PublishFile {
  /** Determines the content type by its extension; not published itself. */
  name: string
  bytes: Uint8Array
  /** The owner's locking script. */
  lock: Uint8Array
  /** Overrides the content type of the name. */
  contentType?: string
}

export interface StreamOptions {
  profile: StreamProfile
  /** Bytes per chunk; 1 MiB by default. */
  streamChunkSize?: number
}

/**
 * Lays a file out as one inscription, tagged `sha256:<hash>`.
 *
 * @throws PublishError `BAD_LOCK`, `BAD_CONTENT_TYPE`.
 */
export function layOutFile(options: PublishFile): PublishOutput {
  const { name, bytes, lock, contentType = contentTypeOf(name) } = options
  checkLock(lock)
  return inscribe({ lock, contentType, body: bytes, tags: [contentTag(bytes)] })
}

/**
 * Lays a file out as a stream (`docs/spec/protocol.md`, Streams): one output per transaction, in order; each transaction spends
 * the previous output. A file that fits in one chunk, even an empty one, is a stream of one output. Each output is tagged
 * `sha256:<hash of the file>` and `stream-i:<index>`.
 *
 * @throws PublishError `BAD_CHUNK_SIZE` unless the size is a whole number of at least 1, `BAD_LOCK`, `BAD_CONTENT_TYPE`.
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
 * Lays a file out by the options of the reference minting tool: with `stream: true` or a `streamChunkSize`, as a stream; with
 * neither, as one inscription, the only output.
 *
 * @throws PublishError as {@link layOutStream} and {@link layOutFile}.
 */
export function layOut(file: PublishFile & StreamOptions & { stream?: boolean }): PublishOutput[] {
  const { stream = file.streamChunkSize !== undefined } = file
  return stream ? layOutStream(file) : [layOutFile(file)]
}

/** How many chunks a stream of this many bytes has: at least one. */
export function streamChunkCount(length: number, chunkSize = DEFAULT_STREAM_CHUNK_SIZE): number {
  return Math.max(1, Math.ceil(length / chunkSize))
}

/**
 * Lays out one chunk of {@link layOutStream}, for callers that do not hold the whole file in memory.
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

/** Chunk 0 has the content type of the stream; the others are marked as its continuation. */
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
  throw new PublishError('BAD_CHUNK_SIZE', `a chunk size is a whole number of bytes, at least 1, not ${size}`)
}
