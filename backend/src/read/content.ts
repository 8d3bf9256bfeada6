import type { Sql } from '../facts/connection.js'
import type { LocalLog } from '../facts/local-log.js'
import { FACT } from '../facts/log.js'
import { isPurged } from '../facts/registers.js'
import { BlockedError } from '../graph/blocklist.js'
import { DamagedError } from '../graph/errors.js'
import { sha256 as sha256Of } from '../graph/native-hash.js'
import { CHUNK_BYTES } from '../graph/records.js'
import type { Guard } from './guard.js'
import { blobOf, type Reader } from './reader.js'

/** `length` bytes from the byte `from` on; the first byte is 0. */
export interface ByteRange {
  from: number
  length: number
}

/** The largest short body, in bytes: an answer may hold all of it in memory. */
export const SHORT_BODY = 64 * 1024

export interface BodyMemory {
  /** How many chunks of a body may be in memory. */
  readonly chunksOfBody: number
  /** A chunk from memory, or else from `read`. */
  chunk(sha256: string, position: number, read: () => Uint8Array | undefined): Uint8Array | undefined
  /** A body made by patches, by its own key, if it is in memory. */
  made(key: string): Uint8Array | undefined
  /** Keeps such a body, unless it is long. */
  keepMade(key: string, body: Uint8Array): void
}

/**
 * Bodies by their SHA-256 in hex. A body is read out of the transaction that inscribed it; only one that is not contiguous in there
 * is a fact of its own.
 */
export class Content {
  constructor(
    private readonly reader: Reader,
    private readonly guard: Guard,
    readonly memory?: BodyMemory,
  ) {}

  /**
   * The chunk at a position, counted from 0: {@link CHUNK_BYTES} of a body, or what is left of it. Undefined if there is none;
   * an empty body has an empty one.
   */
  chunk(sha256: string, position: number): Uint8Array | undefined {
    this.guard.refuseContent(sha256)
    const range = { from: position * CHUNK_BYTES, length: CHUNK_BYTES }
    const read = (): Uint8Array | undefined =>
      this.reader.answer((sql, log) => bodyPart({ sql, log }, sha256, range)?.bytes)
    return this.memory === undefined ? read() : this.memory.chunk(sha256, position, read)
  }

  /**
   * The chunks of a body in order; with a range, exactly its bytes, and fewer if the body ends before. Empty if there is no
   * such body. A body that is blocked while it is read ends there with an error.
   */
  *chunks(
    sha256: string,
    { from, length }: ByteRange = { from: 0, length: Number.POSITIVE_INFINITY },
  ): Generator<Uint8Array> {
    this.guard.refuseContent(sha256)
    const end = from + length
    const remembered = (this.memory?.chunksOfBody ?? 0) * CHUNK_BYTES
    let at = from
    for (; at < end && at < remembered; at += CHUNK_BYTES - (at % CHUNK_BYTES)) {
      const chunk = this.chunk(sha256, Math.floor(at / CHUNK_BYTES))
      if (chunk === undefined) return
      const skipped = at % CHUNK_BYTES
      yield chunk.subarray(skipped, skipped + end - at)
    }
    while (at < end) {
      const page = { from: at, length: end - at, isPage: true }
      const part = this.reader.answer((sql, log) => bodyPart({ sql, log }, sha256, page))
      if (part === undefined) return
      this.guard.refuseContent(sha256)
      yield part.bytes
      if (part.isLast) return
      at += part.bytes.length
    }
  }
}

/** The place of a body; also the body itself, if its transaction is short. */
const BODY = `select coff, clen, txid, substr(log.body, coff + 1, clen) as bytes
  from out cross join tx on tx.id = tid cross join log.log as log on log.seq = tx.seq
  where sha = ? limit 1`
const OWN_BODY = `select body as bytes from log.log where kind = ${FACT.body} and key = ?`

/**
 * Part of a body. Undefined if there is no such body, or it ends before the part; an empty body has an empty part.
 *
 * @param part.isPage Whether to stop at the end of the log's chunk in which the part begins, as chunks are verified as a whole.
 * @throws DamagedError if its bytes are missing or corrupt; BlockedError if they were purged.
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
    if (!isChecked) throw new DamagedError(sha256, 'its hash does not match')
    return { bytes: row.bytes.subarray(from, end), isLast: end === total }
  }
  const start: number = isOwn ? from : place.coff + from
  const stop = isPage ? Math.min(end, from + CHUNK_BYTES - (start % CHUNK_BYTES)) : end
  const [kind, owner] = isOwn ? [FACT.body, key] : [FACT.transaction, place.txid]
  const bytes = log.slice(kind, owner, { from: start, length: stop - from })
  if (bytes === undefined) throw new DamagedError(sha256, 'the body is missing')
  return { bytes, isLast: stop === total }
}
