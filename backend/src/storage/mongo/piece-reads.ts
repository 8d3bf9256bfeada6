import { joinBytes } from '../../protocol/bytes.js'
import { hashColumn, hexOf, inParts, PIECE_BYTES } from '../columns.js'
import type { Pieces } from '../pieces.js'
import { pieceId } from './collections.js'
import type { Documents } from './documents.js'

/** The pieces of a database. */
export function piecesIn(documents: Documents): Pieces {
  return {
    async piece(owner, position) {
      const doc = await documents.first(
        'graph_pieces',
        { _id: pieceId(owner, position) },
        { fields: ['bytes'] },
      )
      return doc?.bytes
    },
  }
}

/** Those of the owners, in hex, of which there are pieces. */
export async function heldPieces(documents: Documents, owners: string[]): Promise<Set<string>> {
  const docs = await inParts(owners, (part) =>
    documents.all(
      'graph_pieces',
      { _id: { $in: part.map((owner) => pieceId(hashColumn(owner), 0)) } },
      { fields: ['owner'] },
    ),
  )
  return new Set(docs.map(({ owner }) => hexOf(owner)))
}

/** All pieces of an owner, put together; undefined where there is none. Each is asked for by its key. */
export async function readPieces(documents: Documents, owner: Buffer): Promise<Uint8Array | undefined> {
  const pieces = piecesIn(documents)
  const found: Uint8Array[] = []
  for (;;) {
    const piece = await pieces.piece(owner, found.length)
    if (piece !== undefined) found.push(piece)
    // Only the last is shorter than the others.
    if (piece === undefined || piece.length < PIECE_BYTES) break
  }
  return found.length > 1 ? joinBytes(found) : found[0]
}
