import { joinBytes } from '../../protocol/bytes.js'
import type { BlobChunks } from '../read/read-blobs.js'
import { CHUNK_BYTES, hashColumn, hexOf, inParts } from '../rows/columns.js'
import { chunkId } from './collections.js'
import type { Documents } from './documents.js'

/** The blob chunks of a database. */
export function chunksIn(documents: Documents): BlobChunks {
  return {
    async chunk(owner, position) {
      const doc = await documents.first(
        'graph_pieces',
        { _id: chunkId(owner, position) },
        { fields: ['bytes'] },
      )
      return doc?.bytes
    },
  }
}

/** Those of the owners, as hex, that have chunks. */
export async function heldChunks(documents: Documents, owners: string[]): Promise<Set<string>> {
  const docs = await inParts(owners, (part) =>
    documents.all(
      'graph_pieces',
      { _id: { $in: part.map((owner) => chunkId(hashColumn(owner), 0)) } },
      { fields: ['owner'] },
    ),
  )
  return new Set(docs.map(({ owner }) => hexOf(owner)))
}

/** A whole blob; undefined if there is none. Finds each chunk by its key. */
export async function readChunks(documents: Documents, owner: Buffer): Promise<Uint8Array | undefined> {
  const chunks = chunksIn(documents)
  const found: Uint8Array[] = []
  for (;;) {
    const chunk = await chunks.chunk(owner, found.length)
    if (chunk !== undefined) found.push(chunk)
    // Only the last is shorter than the others.
    if (chunk === undefined || chunk.length < CHUNK_BYTES) break
  }
  return found.length > 1 ? joinBytes(found) : found[0]
}
