import { hexOf, PIECE_BYTES, parts, ROWS_A_STATEMENT, unique } from '../columns.js'
import { pieceId, piecesOf } from './collections.js'
import type { Documents } from './documents.js'
import type { PendingDocuments } from './pending-documents.js'

/** `owner` is 32 bytes: the body's hash, or what stands for it. */
interface Body {
  owner: Buffer
  bytes: Uint8Array
}

/** Writes bodies in pieces; one that is there stays as it is. */
export async function writePieces(pending: PendingDocuments, bodies: Body[]): Promise<void> {
  const wanted = unique(bodies, ({ owner }) => hexOf(owner))
  const held = await heldPieces(
    pending,
    wanted.map(({ owner }) => owner),
  )
  await insertPieces(
    pending,
    wanted.filter(({ owner }) => !held.has(hexOf(owner))),
  )
}

/** Those of the owners, as hex, of which there are pieces. */
export async function heldPieces(documents: Documents, owners: Buffer[]): Promise<Set<string>> {
  const held = new Set<string>()
  for (const part of parts(owners, ROWS_A_STATEMENT)) {
    const docs = await documents.all(
      'graph_pieces',
      { _id: { $in: part.map((owner) => pieceId(owner, 0)) } },
      { fields: ['owner'] },
    )
    for (const { owner } of docs) held.add(hexOf(owner))
  }
  return held
}

/** Writes bodies in pieces that are not there; each once. */
export async function insertPieces(pending: PendingDocuments, bodies: Body[]): Promise<void> {
  const docs = bodies.flatMap(({ owner, bytes }) => {
    // An empty body has one empty piece, so that it is told from a body that is not there.
    const count = Math.max(1, Math.ceil(bytes.length / PIECE_BYTES))
    return Array.from({ length: count }, (_, position) => ({
      owner,
      position,
      bytes: Buffer.from(bytes.subarray(position * PIECE_BYTES, (position + 1) * PIECE_BYTES)),
    }))
  })
  await pending.insertNew('graph_pieces', docs)
}

/** Takes the pieces of a body away. */
export async function deletePieces(pending: PendingDocuments, owner: Buffer): Promise<void> {
  await pending.delete('graph_pieces', piecesOf(owner))
}
