import type { Sql } from '../facts/connection.js'
import type { LocalLog } from '../facts/local-log.js'
import { FACT } from '../facts/log.js'
import { isPurged } from '../facts/registers.js'
import { BlockedError } from '../graph/blocklist.js'
import { DamagedError } from '../graph/errors.js'
import { type ByteRange, CHUNK_BYTES, type ContentReader } from '../graph/graph-store.js'
import { sha256 as sha256Of } from '../graph/native-hash.js'
import { blobOf, type Reader } from './reader.js'

/**
 * Bodies by their hash. A body is read out of the transaction that inscribed it; only one that is not contiguous in there is a
 * fact of its own.
 */
export function contentIn(reader: Reader): ContentReader {
  return {
    chunk: (sha256, position) =>
      reader.answer((sql, log) => {
        const from = position * CHUNK_BYTES
        return bodyPart({ sql, log }, sha256, { from, length: CHUNK_BYTES })?.bytes
      }),
    chunks: (sha256, range) => chunksOf(reader, sha256, range),
  }
}

/** Where a body is; the body itself, too, if its transaction is short. */
const BODY = `select coff, clen, txid, substr(log.body, coff + 1, clen) as bytes
  from out cross join tx on tx.id = tid cross join log.log as log on log.seq = tx.seq
  where sha = ? limit 1`
const OWN_BODY = `select body as bytes from log.log where kind = ${FACT.body} and key = ?`

/**
 * Part of a body. Undefined if there is no such body, or it ends before the part; an empty body has an empty part.
 *
 * @param part.isPage Whether no more is to be read than the chunk of the log in which the part begins, as it is verified as a whole.
 * @throws DamagedError if its bytes are not those that were stored; BlockedError if they were purged.
 */
function bodyPart(
  { sql, log }: { sql: Sql; log: LocalLog },
  sha256: string,
  { from, length, isPage = false }: ByteRange & { isPage?: boolean },
): { bytes: Uint8Array; isLast: boolean } | undefined {
  const key = blobOf(sha256)
  const place = sql.get(BODY, key)
  if (place === undefined) return undefined
  const total: number = place.clen
  if (from >= total) return total + from > 0 ? undefined : { bytes: new Uint8Array(), isLast: true }
  const isOwn = place.coff === null
  const row = isOwn ? sql.get(OWN_BODY, key) : place
  const isChecked = row?.bytes != null && sha256Of(row.bytes).equals(key)
  if (!isChecked && isPurged(log, place.txid)) throw new BlockedError('content')
  if (row === undefined) throw new DamagedError(sha256, 'the body is missing')
  const end = Math.min(from + length, total)
  if (row.bytes !== null) {
    if (!isChecked) throw new DamagedError(sha256, 'its hash is another one')
    return { bytes: row.bytes.subarray(from, end), isLast: end === total }
  }
  const start: number = isOwn ? from : place.coff + from
  const stop = isPage ? Math.min(end, from + CHUNK_BYTES - (start % CHUNK_BYTES)) : end
  const [kind, owner] = isOwn ? [FACT.body, key] : [FACT.transaction, place.txid]
  const bytes = log.slice(kind, owner, { from: start, length: stop - from })
  if (bytes === undefined) throw new DamagedError(sha256, 'the body is missing')
  return { bytes, isLast: stop === total }
}

function* chunksOf(reader: Reader, sha256: string, range?: ByteRange): Generator<Uint8Array> {
  const end = (range?.from ?? 0) + (range?.length ?? Number.POSITIVE_INFINITY)
  for (let from = range?.from ?? 0; from < end; ) {
    const page = { from, length: end - from, isPage: true }
    const part = reader.answer((sql, log) => bodyPart({ sql, log }, sha256, page))
    if (part === undefined) return
    yield part.bytes
    if (part.isLast) return
    from += part.bytes.length
  }
}
