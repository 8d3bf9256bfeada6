import { DamagedError } from '../../graph/errors.js'
import { type ByteRange, CHUNK_BYTES, type ContentReader } from '../../graph/graph-store.js'
import { sha256 } from '../../graph/native-hash.js'
import { joinBytes } from '../../protocol/bytes.js'
import { bytesOf, hashColumn, hexOf, inParts } from '../rows/columns.js'
import { anyOf, type Row, type RowReader } from '../rows/rows.js'

/** Blobs in chunks of `CHUNK_BYTES`: bodies, raw transactions and MAP. */
export interface BlobChunks {
  /**
   * A chunk by its position, counted from 0; undefined if there is none.
   *
   * @param owner 32 bytes: the hash of a body, a txid, or a hash that identifies something else.
   * @throws DamagedError if its bytes are not those that were stored.
   */
  chunk(owner: Buffer, position: number): Promise<Uint8Array | undefined>
}

/** The blob chunks of a database. */
export function chunksIn(rows: RowReader): BlobChunks {
  return {
    async chunk(owner, position) {
      const row = await rows.first('graph_pieces', { owner, position }, { fields: CHUNK })
      return row && intactBytes(row, { owner, position })
    },
  }
}

/** The columns that {@link intactBytes} reads. */
export const CHUNK = ['bytes', 'checksum']

/** The bytes of a chunk. @throws DamagedError if they are not those that were stored. */
export function intactBytes(row: Row, { owner, position }: { owner: Buffer; position: number }): Uint8Array {
  const bytes = bytesOf(row.bytes)
  if (isIntact(bytes, { owner, checksum: row.checksum })) return bytes
  throw new DamagedError(hexOf(owner), `chunk ${position}`)
}

/**
 * Whether the bytes of a chunk are those that were stored. Most blobs are one chunk, and their owner is their hash; any other
 * chunk has a checksum, so that a range of a long body takes no hash of all of it.
 */
export function isIntact(bytes: Uint8Array, chunk: { owner: Buffer; checksum: unknown }): boolean {
  const hash = sha256(bytes)
  if (chunk.checksum !== null && chunk.checksum !== undefined) return hash.equals(bytesOf(chunk.checksum))
  return identifies(chunk.owner, hash)
}

/** Whether the owner of a blob is its hash: of a body, or as a txid of a transaction. @param hash The SHA-256 of the blob. */
export function identifies(owner: Buffer, hash: Buffer): boolean {
  return hash.equals(owner) || sha256(hash).reverse().equals(owner)
}

/** The checksum to store with a chunk; null for a blob that is identified by its hash and has no other chunk. */
export function checksumOf(chunk: Uint8Array, blob: { owner: Buffer; length: number }): Buffer | null {
  const isWhole = blob.length === chunk.length
  return isWhole && isIntact(chunk, { owner: blob.owner, checksum: null }) ? null : sha256(chunk)
}

/** Those of the owners, as hex, that have chunks. */
export async function heldChunks(rows: RowReader, owners: string[]): Promise<Set<string>> {
  const held = await inParts(owners, (part) =>
    rows.all('graph_pieces', { owner: anyOf(part), position: 0 }, { fields: ['owner'] }),
  )
  return new Set(held.map(({ owner }) => hexOf(owner)))
}

/** A whole blob; undefined if there is none. @param first Its first chunk, if that was read already. */
export async function readChunks(
  blobs: BlobChunks,
  owner: Buffer,
  first?: Uint8Array,
): Promise<Uint8Array | undefined> {
  const found: Uint8Array[] = []
  for (let chunk = first ?? (await blobs.chunk(owner, 0)); chunk !== undefined; ) {
    found.push(chunk)
    // Only the last is shorter than the others.
    if (chunk.length < CHUNK_BYTES) break
    chunk = await blobs.chunk(owner, found.length)
  }
  return found.length > 1 ? joinBytes(found) : found[0]
}

/** The bodies of a store. */
export function contentIn(blobs: BlobChunks): ContentReader {
  return contentBy((sha256, position) => blobs.chunk(hashColumn(sha256), position))
}

/** The bodies whose chunks a function reads. */
export function contentBy(chunk: ContentReader['chunk']): ContentReader {
  return { chunk, chunks: (sha256, range) => contentChunks(chunk, sha256, range) }
}

async function* contentChunks(
  readChunk: ContentReader['chunk'],
  sha256: string,
  range?: ByteRange,
): AsyncGenerator<Uint8Array> {
  const from = range?.from ?? 0
  const end = from + (range?.length ?? Number.POSITIVE_INFINITY)
  for (let position = Math.floor(from / CHUNK_BYTES); ; position++) {
    const start = position * CHUNK_BYTES
    if (start >= end) return
    const chunk = await readChunk(sha256, position)
    if (chunk === undefined) return
    yield chunk.subarray(Math.max(from - start, 0), end - start)
  }
}
