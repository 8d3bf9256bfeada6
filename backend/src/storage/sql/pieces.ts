import type { Knex } from 'knex'
import { joinBytes } from '../../protocol/bytes.js'
import { bytesOf, hexOf, PIECE_BYTES, parts, ROWS_A_STATEMENT, unique } from '../columns.js'
import type { Pieces } from '../pieces.js'
import { insertNew } from './insert-new.js'
import type { SqlReader } from './sql-reader.js'
import { anyOf, knexReader } from './sql-reader.js'

/** So that one statement stays far below what a server takes in one packet. */
const BYTES_A_STATEMENT = 4 * 1024 * 1024

/** `owner` is 32 bytes: the body's hash, or what stands for it. */
interface Body {
  owner: Buffer
  bytes: Uint8Array
}

/** Writes bodies in pieces; one that is there stays as it is. */
export async function writePieces(trx: Knex.Transaction, bodies: Body[]): Promise<void> {
  const wanted = unique(bodies, ({ owner }) => hexOf(owner))
  const held = await heldPieces(
    trx,
    wanted.map(({ owner }) => owner),
  )
  await insertPieces(
    trx,
    wanted.filter(({ owner }) => !held.has(hexOf(owner))),
  )
}

/** Those of the owners, as hex, of which there are pieces. */
export async function heldPieces(trx: Knex.Transaction, owners: Buffer[]): Promise<Set<string>> {
  const held = new Set<string>()
  for (const part of parts(owners, ROWS_A_STATEMENT)) {
    const rows = await knexReader(trx).all(
      `select owner from graph_pieces where owner in (${anyOf(part)}) and position = 0`,
      part,
    )
    for (const { owner } of rows) held.add(hexOf(owner))
  }
  return held
}

/** Writes bodies in pieces that are not there; each once. */
export async function insertPieces(trx: Knex.Transaction, bodies: Body[]): Promise<void> {
  let rows: { owner: Buffer; position: number; bytes: Uint8Array }[] = []
  let size = 0
  const flush = async (): Promise<void> => {
    await insertNew(trx, 'graph_pieces', rows)
    rows = []
    size = 0
  }
  for (const { owner, bytes } of bodies) {
    // An empty body has one empty piece, so that it is told from a body that is not there.
    for (let at = 0; at === 0 || at < bytes.length; at += PIECE_BYTES) {
      const piece = bytes.subarray(at, at + PIECE_BYTES)
      rows.push({ owner, position: at / PIECE_BYTES, bytes: Buffer.from(piece) })
      size += piece.length
      if (size >= BYTES_A_STATEMENT || rows.length >= ROWS_A_STATEMENT) await flush()
    }
  }
  await flush()
}

/** The pieces of a database. */
export function piecesIn(reader: SqlReader): Pieces {
  return {
    async piece(owner, position) {
      const row = await reader.first('select bytes from graph_pieces where owner = ? and position = ?', [
        owner,
        position,
      ])
      return row && bytesOf(row.bytes)
    },
  }
}

/** A body that is held, put together. */
export async function readPieces(reader: SqlReader, owner: Buffer): Promise<Uint8Array> {
  const rows = await reader.all('select bytes from graph_pieces where owner = ? order by position', [owner])
  return joinBytes(rows.map(({ bytes }) => bytesOf(bytes)))
}
