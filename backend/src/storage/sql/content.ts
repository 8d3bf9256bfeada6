import { joinBytes } from '../../protocol/bytes.js'
import type { BlobChunks } from '../read/read-blobs.js'
import { bytesOf } from '../rows/columns.js'
import type { SqlReader } from './database.js'

/** The blob chunks of a database. */
export function chunksIn(reader: SqlReader): BlobChunks {
  return {
    async chunk(owner, position) {
      const row = await reader.first('select bytes from graph_pieces where owner = ? and position = ?', [
        owner,
        position,
      ])
      return row && bytesOf(row.bytes)
    },
  }
}

/** A whole blob. */
export async function readChunks(reader: SqlReader, owner: Buffer): Promise<Uint8Array> {
  const rows = await reader.all('select bytes from graph_pieces where owner = ? order by position', [owner])
  return joinBytes(rows.map(({ bytes }) => bytesOf(bytes)))
}
