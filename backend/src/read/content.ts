import type { Sql } from '../facts/connection.js'
import { FACT, type FactKind } from '../facts/log.js'
import { DamagedError } from '../graph/errors.js'
import { type ByteRange, CHUNK_BYTES, type ContentReader } from '../graph/graph-store.js'
import { sha256 as sha256Of } from '../graph/native-hash.js'
import { partOf } from './log-bytes.js'
import { blobOf, type Reader } from './reader.js'

/**
 * Bodies by their hash. A body is read out of the transaction that inscribed it; only one that is not contiguous in there is a
 * fact of its own.
 */
export function contentIn(reader: Reader): ContentReader {
  return {
    chunk: (sha256, position) =>
      reader.answer((sql) => {
        const from = position * CHUNK_BYTES
        return bodyPart(sql, sha256, { from, length: CHUNK_BYTES })?.bytes
      }),
    chunks: (sha256, range) => chunksOf(reader, sha256, range),
  }
}

/** Where a body is, and the body itself if it and its transaction are short. */
const BODY = `select coff, clen, txid, substr(log.body, coff + 1, clen) as bytes
  from out cross join tx on tx.id = tid cross join log.log as log on log.kind = ${FACT.transaction} and log.key = tx.txid
  where sha = ? limit 1`
const OWN_BODY = `select length as clen, body as bytes from log.log where kind = ${FACT.body} and key = ?`

/**
 * Part of a body: up to the end of the chunk of the log in which it begins, or all of the part if the body is in one row.
 * Undefined if there is no such body, or it ends before the part; an empty body has an empty part.
 *
 * @throws DamagedError if its bytes are not those that were stored.
 */
function bodyPart(
  sql: Sql,
  sha256: string,
  { from, length, isStream = false }: ByteRange & { isStream?: boolean },
): { bytes: Uint8Array; isLast: boolean } | undefined {
  const key = blobOf(sha256)
  const found = sql.get(BODY, key)
  if (found === undefined) return undefined
  const isOwn = found.coff === null
  const row = isOwn ? sql.get(OWN_BODY, key) : found
  if (row === undefined) throw new DamagedError(sha256, 'the body is missing')
  const total: number = row.clen
  if (from >= total && (from > 0 || total > 0)) return undefined
  const end = Math.min(from + length, total)
  if (row.bytes !== null) {
    if (!sha256Of(row.bytes).equals(key)) throw new DamagedError(sha256, 'its hash is another one')
    return { bytes: row.bytes.subarray(from, end), isLast: end === total }
  }
  const fact: { kind: FactKind; key: Buffer } = isOwn
    ? { kind: FACT.body, key }
    : { kind: FACT.transaction, key: found.txid }
  const start: number = isOwn ? from : found.coff + from
  // A chunk of the log is read and verified once for what of it is wanted.
  const stop = isStream ? Math.min(end, from + CHUNK_BYTES - (start % CHUNK_BYTES)) : end
  const bytes = partOf(sql, fact, { from: start, length: stop - from })
  return { bytes, isLast: stop === total }
}

async function* chunksOf(reader: Reader, sha256: string, range?: ByteRange): AsyncGenerator<Uint8Array> {
  const end = (range?.from ?? 0) + (range?.length ?? Number.POSITIVE_INFINITY)
  for (let from = range?.from ?? 0; from < end; ) {
    const at = from
    const part = reader.answer((sql) =>
      bodyPart(sql, sha256, { from: at, length: end - at, isStream: true }),
    )
    if (part === undefined) return
    yield part.bytes
    if (part.isLast) return
    from += part.bytes.length
  }
}
