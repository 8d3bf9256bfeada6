import { joinBytes } from '../../protocol/bytes.js'
import type { BlobChunks } from '../read/read-blobs.js'
import { CHUNK_BYTES, hashColumn, hexOf, inParts } from '../rows/columns.js'
import { chunkId } from './collections.js'
import type { Documents } from './documents.js'

/** The pieces of a database. */
export function chunksIn(documents: Documents): BlobChunks {
  return {
    async piece(owner, position) {
      const doc = await documents.first(
        'graph_pieces',
        { _id: chunkId(owner, position) },
        { fields: ['bytes'] },
      )
      return doc?.bytes
    },
  }
}

/** Those of the owners, in hex, of which there are pieces. */
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

/** All pieces of an owner, put together; undefined where there is none. Each is asked for by its key. */
export async function readChunks(documents: Documents, owner: Buffer): Promise<Uint8Array | undefined> {
  const pieces = chunksIn(documents)
  const found: Uint8Array[] = []
  for (;;) {
    const piece = await pieces.piece(owner, found.length)
    if (piece !== undefined) found.push(piece)
    // Only the last is shorter than the others.
    if (piece === undefined || piece.length < CHUNK_BYTES) break
  }
  return found.length > 1 ? joinBytes(found) : found[0]
}
