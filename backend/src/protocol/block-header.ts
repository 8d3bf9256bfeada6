import { fromHex, reversed, toHex } from './bytes.js'

/**
 * Block headers: version, hash of the previous header, merkle root, time, bits and nonce, 80 bytes with all numbers little-endian
 * (https://github.com/bitcoin-sv/bitcoin-sv/blob/master/src/primitives/block_header.h). Functions take consecutive headers in
 * one array and the index of one of them.
 */
export const HEADER_BYTES = 80

const PREVIOUS_AT = 4
const ROOT_AT = 36
const TIME_AT = 68
const BITS_AT = 72
const HASH_BYTES = 32

/** The fields of a header; hashes are hex in display order. */
export interface BlockHeaderFields {
  version: number
  previous: string
  root: string
  /** Seconds since 1970. */
  time: number
  bits: number
  nonce: number
}

export function encodeHeader(fields: BlockHeaderFields): Uint8Array {
  const bytes = new Uint8Array(HEADER_BYTES)
  const view = new DataView(bytes.buffer)
  view.setInt32(0, fields.version, true)
  bytes.set(reversed(fromHex(fields.previous)), PREVIOUS_AT)
  bytes.set(reversed(fromHex(fields.root)), ROOT_AT)
  view.setUint32(TIME_AT, fields.time, true)
  view.setUint32(BITS_AT, fields.bits, true)
  view.setUint32(BITS_AT + 4, fields.nonce, true)
  return bytes
}

export function decodeHeader(header: Uint8Array): BlockHeaderFields {
  return {
    version: uint32(header, 0) | 0,
    previous: toHex(reversed(previousOf(header))),
    root: rootOf(header),
    time: timeOf(header),
    bits: bitsOf(header),
    nonce: uint32(header, BITS_AT + 4),
  }
}

export function headerCount(headers: Uint8Array): number {
  return headers.length / HEADER_BYTES
}

/** One of consecutive headers, not copied. */
export function headerAt(headers: Uint8Array, index: number): Uint8Array {
  return headers.subarray(index * HEADER_BYTES, (index + 1) * HEADER_BYTES)
}

/** The hash of the header before, in internal order. */
export function previousOf(headers: Uint8Array, index = 0): Uint8Array {
  const at = index * HEADER_BYTES + PREVIOUS_AT
  return headers.subarray(at, at + HASH_BYTES)
}

/** The merkle root, as hex in display order. */
export function rootOf(headers: Uint8Array, index = 0): string {
  const at = index * HEADER_BYTES + ROOT_AT
  return toHex(reversed(headers.subarray(at, at + HASH_BYTES)))
}

/** In seconds since 1970. */
export function timeOf(headers: Uint8Array, index = 0): number {
  return uint32(headers, index * HEADER_BYTES + TIME_AT)
}

/** The target of its proof of work, in compact form. */
export function bitsOf(headers: Uint8Array, index = 0): number {
  return uint32(headers, index * HEADER_BYTES + BITS_AT)
}

/** @throws RangeError if the array is too short. */
function uint32(bytes: Uint8Array, at: number): number {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(at, true)
}

/** The number of possible hashes. */
const HASHES = 2n ** 256n

/**
 * The target in compact form: a base-256 exponent and three digits, of which the highest bit is a sign. Undefined if it is no
 * target: zero, negative, or longer than a hash.
 */
export function targetOf(bits: number): bigint | undefined {
  const exponent = bits >>> 24
  const digits = BigInt(bits & 0x7fffff)
  const target = exponent <= 3 ? digits >> BigInt(8 * (3 - exponent)) : digits << BigInt(8 * (exponent - 3))
  return (bits & 0x800000) !== 0 || target === 0n || target >= HASHES ? undefined : target
}

/** The compact form of a target: its digits below the three highest are lost. */
export function compactOf(target: bigint): number {
  let length = Math.ceil(target.toString(16).length / 2)
  let digits = Number(length <= 3 ? target << BigInt(8 * (3 - length)) : target >> BigInt(8 * (length - 3)))
  // The highest bit is a sign.
  if (digits >= 0x800000) {
    digits >>>= 8
    length++
  }
  return ((length << 24) | digits) >>> 0
}

/** How many hashes it takes on average to meet a target. @throws RangeError if the bits are no target. */
export function workOf(bits: number): bigint {
  const target = targetOf(bits)
  if (target === undefined) throw new RangeError(`not a target: ${bits.toString(16)}`)
  return HASHES / (target + 1n)
}

export function targetFor(work: bigint): bigint {
  return (HASHES - work) / work
}

/** A hash as the number that is compared with a target. @param hash In internal order. */
export function hashNumber(hash: Uint8Array): bigint {
  return BigInt(`0x${toHex(reversed(hash))}`)
}
