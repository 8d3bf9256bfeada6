import { ByteCursor } from './byte-cursor.js'
import { joinBytes } from './bytes.js'
import { encodeVarint } from './varint.js'

/** A node of the tree of a block, as a merkle path gives it. */
export interface PathNode {
  /** In internal order; undefined if it repeats the node to its left. */
  hash: Uint8Array | undefined
  /** Whether it is flagged as a transaction that the path is about. */
  isTxid: boolean
}

/** The nodes that are given of one level, by their places in it. */
export type PathLevel = Map<number, PathNode>

/** A merkle path (BUMP, BRC-74) as it is written: of a block, at a height, level by level, the transactions first. */
export interface Bump {
  height: number
  levels: PathLevel[]
}

/** Leaves of all levels: more than any block shows of itself, and each is an object to hold. */
export const MAX_LEAVES = 300_000
/** Heights are 32-bit where block headers are; far more blocks than there will be. */
const MAX_HEIGHT = 0x7fffffff
/** Levels of a block of 2^32 transactions; BRC-74 has room for 64, and the SDK, which counts in 32 bits, for these. */
const MAX_LEVELS = 32
/** The SDK's 32 bits have a sign. */
const MAX_OFFSET = 2 ** 31 - 1

const DUPLICATE_FLAG = 1
const TXID_FLAG = 2
const DUPLICATE: PathNode = { hash: undefined, isTxid: false }

/** Skips a merkle path, checking its counts against the bytes left and nothing else. */
export function takeBump(cursor: ByteCursor): { bytes: Uint8Array; leaves: number } {
  const start = cursor.at
  cursor.varint()
  let leaves = 0
  for (const _ of takeLeaves(cursor, cursor.u8())) leaves++
  return { bytes: cursor.bytes.subarray(start, cursor.at), leaves }
}

/**
 * Reads bytes that are one merkle path. Does not check that it leads anywhere.
 *
 * @param fail Makes the error to throw if they are not, if two leaves share a place, or if no block could have such a
 * path.
 */
export function readBump(bytes: Uint8Array, fail: (message: string) => Error): Bump {
  const cursor = new ByteCursor(bytes, fail)
  const height = cursor.varint()
  if (height > MAX_HEIGHT) throw fail(`${height} is not a block height`)
  const count = cursor.u8()
  if (count === 0 || count > MAX_LEVELS) throw fail(`a merkle path has 1 to ${MAX_LEVELS} levels`)
  const levels = Array.from({ length: count }, (): PathLevel => new Map())
  for (const { level, offset, node } of takeLeaves(cursor, count)) {
    if (offset > MAX_OFFSET) throw fail('a leaf of a merkle path has an offset beyond any block')
    if (level > 0 && node.isTxid) throw fail('a merkle path flags an inner node as a transaction')
    if (levels[level]?.has(offset)) throw fail('a merkle path has two leaves at one offset')
    levels[level]?.set(offset, node)
  }
  if (!cursor.atEnd) throw fail('there are extra bytes after the merkle path')
  return { height, levels }
}

/** The leaves of each level: place, flags, and a hash unless the flags say there is none. */
function* takeLeaves(
  cursor: ByteCursor,
  levels: number,
): Generator<{ level: number; offset: number; node: PathNode }> {
  for (let level = 0; level < levels; level++) {
    for (let left = cursor.count('leaves of a merkle path', MAX_LEAVES); left > 0; left--) {
      const offset = cursor.varint()
      const flags = cursor.u8()
      const isDuplicate = (flags & DUPLICATE_FLAG) !== 0
      const node = isDuplicate ? DUPLICATE : { hash: cursor.take(32), isTxid: (flags & TXID_FLAG) !== 0 }
      yield { level, offset, node }
    }
  }
}

/** The bytes of a merkle path, the leaves of each level in their order. */
export function encodeBump({ height, levels }: Bump): Uint8Array {
  const parts = [encodeVarint(height), Uint8Array.of(levels.length)]
  for (const level of levels) {
    parts.push(encodeVarint(level.size))
    for (const [offset, { hash, isTxid }] of [...level].sort(([a], [b]) => a - b)) {
      parts.push(encodeVarint(offset))
      if (hash === undefined) parts.push(Uint8Array.of(DUPLICATE_FLAG))
      else parts.push(Uint8Array.of(isTxid ? TXID_FLAG : 0), hash)
    }
  }
  return joinBytes(parts)
}
