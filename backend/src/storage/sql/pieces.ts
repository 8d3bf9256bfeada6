import { joinBytes } from '../../protocol/bytes.js'
import { bytesOf } from '../columns.js'
import type { Pieces } from '../pieces.js'
import type { SqlReader } from './sql-reader.js'

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
