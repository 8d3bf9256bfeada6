import { encodeNumber } from './byte-cursor.js'
import { concatBytes, fromHex, percentDecoded, reversed, toHex } from './bytes.js'
import { GeneralError } from './coded-error.js'

/** One output of one transaction. */
export interface Outpoint {
  /** 64 lower-case hex characters, in display order. */
  txid: string
  /** 0 to 4294967295. */
  vout: number
}

/** The targets of a reference to content (`docs/spec/protocol.md`, Pointers). A sibling is in the same transaction. */
export type Pointer =
  | { kind: 'outpoint'; outpoint: Outpoint }
  | { kind: 'transaction'; txid: string }
  | { kind: 'sibling'; vout: number }

/** The text is not a pointer, or not a sequence. `text` is all of it. */
export class PointerError extends GeneralError<'BAD_OUTPOINT' | 'BAD_SEQUENCE'> {
  override readonly name = 'PointerError'

  constructor(
    code: 'BAD_OUTPOINT' | 'BAD_SEQUENCE',
    readonly text: string,
  ) {
    const shown = JSON.stringify(text.length > SHOWN_LENGTH ? `${text.slice(0, SHOWN_LENGTH)}…` : text)
    super(code, `${code === 'BAD_OUTPOINT' ? 'not an outpoint' : 'not a sequence'}: ${shown}`)
  }
}

/** A little more than an outpoint with a sequence, so that near misses are shown in full. */
const SHOWN_LENGTH = 100

/** Up to 2^32 - 1. */
const VOUT =
  '0|[1-9][0-9]{0,8}|[1-3][0-9]{9}|4[01][0-9]{8}|42[0-8][0-9]{7}|429[0-3][0-9]{6}|4294[0-8][0-9]{5}|42949[0-5][0-9]{4}|429496[0-6][0-9]{3}|4294967[01][0-9]{2}|42949672[0-8][0-9]|429496729[0-5]'
const STEP = '-[12]|0|[1-9][0-9]{0,15}'
const OUTPOINT = new RegExp(`^([0-9a-fA-F]{64})[_.i](${VOUT})$`)
const TXID = /^[0-9a-fA-F]{64}$/
const SIBLING = new RegExp(`^_(${VOUT})$`)
const SEQUENCE = new RegExp(`^(?:${STEP})$`)

/**
 * The text of a pointer in the path of a URL, its percent-escapes decoded once.
 * @throws PointerError if an escape is broken.
 */
export function decodedPointer(escaped: string): string {
  const text = percentDecoded(escaped)
  if (text === undefined) throw new PointerError('BAD_OUTPOINT', escaped)
  return text
}

/** The patterns behind the parsers, for schemas. Only the parser knows how large a sequence may be. */
export const OUTPOINT_PATTERNS = {
  /** As {@link parseOutpoint} reads it. */
  asked: OUTPOINT,
  /** As {@link formatOutpoint} writes it. */
  written: /* @__PURE__ */ new RegExp(`^[0-9a-f]{64}_(?:${VOUT})$`),
  /** As {@link parseContentReference} reads it. */
  reference: /* @__PURE__ */ new RegExp(`^[0-9a-fA-F]{64}(?:[_.i](?:${VOUT}))?(?::(?:${STEP}))?$`),
}

const ORD_SCHEME = 'ord://'

/** Bytes of an outpoint as transactions and covenants carry it: 32 of txid, 4 of vout. */
const ENCODED_LENGTH = 36

/**
 * Reads `<txid>_<vout>`, `<txid>.<vout>`, or `<txid>i<vout>` as ord writes ids of inscriptions; hex in either case.
 * @throws PointerError (`BAD_OUTPOINT`) for anything else, a vout beyond 32 bits or with leading zeros too.
 */
export function parseOutpoint(text: string): Outpoint {
  const outpoint = readOutpoint(text)
  if (outpoint === undefined) throw new PointerError('BAD_OUTPOINT', text)
  return outpoint
}

/** `<txid>_<vout>`. */
export function formatOutpoint(outpoint: Outpoint): string {
  return `${outpoint.txid}_${outpoint.vout}`
}

/** The 36 bytes of an outpoint: txid in internal order, then vout little-endian. */
export function encodeOutpoint(outpoint: Outpoint): Uint8Array {
  return concatBytes(reversed(fromHex(outpoint.txid)), encodeNumber(outpoint.vout, 4))
}

/**
 * Reads the 36 bytes that {@link encodeOutpoint} writes.
 * @throws RangeError if there are not exactly 36.
 */
export function decodeOutpoint(bytes: Uint8Array): Outpoint {
  if (bytes.length !== ENCODED_LENGTH) throw new RangeError(`an outpoint must have ${ENCODED_LENGTH} bytes`)
  const vout = new DataView(bytes.buffer, bytes.byteOffset + 32, 4).getUint32(0, true)
  return { txid: toHex(reversed(bytes.subarray(0, 32))), vout }
}

/**
 * Reads a pointer as directories hold it: `_N`, an outpoint as {@link parseOutpoint} reads it, `<txid>`, each with or
 * without one `ord://` before it. White space around it (what `String.prototype.trim` removes) means nothing. Undefined for
 * anything else: a directory may have ten thousand of these, and an error takes 8 µs.
 */
export function readPointer(text: string): Pointer | undefined {
  const trimmed = text.trim()
  const bare = trimmed.startsWith(ORD_SCHEME) ? trimmed.slice(ORD_SCHEME.length) : trimmed
  const [, vout] = SIBLING.exec(bare) ?? []
  return vout === undefined ? matchAbsolute(bare) : { kind: 'sibling', vout: Number(vout) }
}

/** `<pointer>[:<seq>]` of a route. */
export interface ContentReference {
  pointer: Exclude<Pointer, { kind: 'sibling' }>
  sequence?: number
}

/**
 * Reads `<pointer>[:<seq>]` of a route, the pointer being an outpoint as {@link parseOutpoint} reads it, or `<txid>`. The
 * sequence is -2 (origin), -1 (tip) or an ownership step from 0 to 2^53 - 1.
 * @throws PointerError `BAD_OUTPOINT` for a bad pointer, else `BAD_SEQUENCE` for a bad sequence.
 */
export function parseContentReference(text: string): ContentReference {
  const colon = text.indexOf(':')
  const pointer = matchAbsolute(colon < 0 ? text : text.slice(0, colon))
  if (pointer === undefined) throw new PointerError('BAD_OUTPOINT', text)
  if (colon < 0) return { pointer }
  const written = text.slice(colon + 1)
  const sequence = Number(written)
  if (!SEQUENCE.test(written) || sequence > Number.MAX_SAFE_INTEGER) {
    throw new PointerError('BAD_SEQUENCE', written)
  }
  return { pointer, sequence }
}

function matchAbsolute(text: string): Exclude<Pointer, { kind: 'sibling' }> | undefined {
  if (TXID.test(text)) return { kind: 'transaction', txid: text.toLowerCase() }
  const outpoint = readOutpoint(text)
  return outpoint && { kind: 'outpoint', outpoint }
}

export function isSameOutpoint(one: Outpoint, other: Outpoint): boolean {
  return one.txid === other.txid && one.vout === other.vout
}

/** Checks an outpoint that plain JavaScript passes. @throws PointerError if it is none, such as a text, or half of one. */
export function checkedOutpoint(value: unknown): Outpoint {
  const { txid, vout } = (value ?? {}) as Partial<Outpoint>
  const read =
    typeof txid === 'string' && typeof vout === 'number' ? readOutpoint(`${txid}_${vout}`) : undefined
  if (read === undefined) throw new PointerError('BAD_OUTPOINT', JSON.stringify(value) ?? String(value))
  return read
}

/** As {@link parseOutpoint}; undefined where that throws. */
export function readOutpoint(text: string): Outpoint | undefined {
  const [, txid, vout] = OUTPOINT.exec(text) ?? []
  return txid === undefined ? undefined : { txid: txid.toLowerCase(), vout: Number(vout) }
}
