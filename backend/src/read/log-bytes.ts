import type { Sql } from '../facts/connection.js'
import type { FactKind } from '../facts/log.js'
import { DamagedError } from '../graph/errors.js'
import { CHUNK_BYTES } from '../graph/graph-store.js'
import { sha256 } from '../graph/native-hash.js'
import { joinBytes } from '../protocol/bytes.js'
import { hexOf } from './reader.js'

const ROW = 'select length, body from log.log where kind = ? and key = ?'
const CHUNK = 'select bytes, checksum from log.chunk where kind = ? and key = ? and position = ?'

/** The body of a fact: all of it, or undefined if it stands in chunks of `CHUNK_BYTES`. `length` is in bytes. */
export interface StoredBody {
  length: number
  body: Buffer | undefined
}

/** Undefined if there is no such fact. */
export function bodyOf(sql: Sql, kind: FactKind, key: Buffer): StoredBody | undefined {
  const row = sql.get(ROW, kind, key)
  return row && { length: row.length, body: row.body ?? undefined }
}

/** A chunk of a body that stands in chunks. @throws DamagedError if its bytes are missing, or not those that were stored. */
export function chunkOf(sql: Sql, kind: FactKind, key: Buffer, position: number): Buffer {
  const row = sql.get(CHUNK, kind, key, position)
  if (row === undefined) throw new DamagedError(hexOf(key), `chunk ${position} is missing`)
  if (!sha256(row.bytes).equals(row.checksum)) throw new DamagedError(hexOf(key), `chunk ${position}`)
  return row.bytes
}

/** Part of a body that stands in chunks. @throws DamagedError as {@link chunkOf}. */
export function partOf(
  sql: Sql,
  fact: { kind: FactKind; key: Buffer },
  { from, length }: { from: number; length: number },
): Uint8Array {
  const parts: Uint8Array[] = []
  const end = from + length
  for (let position = Math.floor(from / CHUNK_BYTES); position * CHUNK_BYTES < end; position++) {
    const start = position * CHUNK_BYTES
    const chunk = chunkOf(sql, fact.kind, fact.key, position)
    parts.push(chunk.subarray(Math.max(from - start, 0), end - start))
  }
  return parts.length === 1 && parts[0] !== undefined ? parts[0] : joinBytes(parts)
}
