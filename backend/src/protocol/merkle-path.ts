import { ByteCursor, encodeVarint } from './byte-cursor.js'
import { concatBytes, equalBytes, joinBytes, reversed, toHex } from './bytes.js'
import type { Hash256 } from './transaction.js'

/** A node of the tree of a block, as a merkle path gives it. */
export interface PathNode {
  /** In internal order; undefined if it repeats the node to its left. */
  hash: Uint8Array | undefined
  /** Whether it is flagged as a transaction that the path is about. */
  isTxid: boolean
}

/** The given nodes of one level, by their places in it. */
type PathLevel = Map<number, PathNode>

/** A parsed merkle path (BUMP, BRC-74): the height of its block, and the nodes of each level, the transactions first. */
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
 * Reads bytes as one merkle path. Does not check that it leads to a root.
 *
 * @param fail Makes the error to throw if they are not, if two leaves share a place, or if no block could have such a path.
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

/**
 * A merkle path (BUMP, BRC-74) that is consistent: all of its transactions lead to the same root. Only headers tell whether a block
 * has it.
 *
 * The SDK's `MerklePath` computes every inner node again for every transaction of a path, so that a path of some hundred leaves
 * keeps it busy for seconds. Here each is computed once, at most one per leaf.
 */
export class MerklePath {
  readonly height: number
  /** The merkle root, hex in shown order. */
  readonly root: string
  /** How many levels the tree has above its transactions; 0 for a block of one. */
  readonly depth: number
  /** The given nodes, with all levels that the places of the transactions need. */
  readonly levels: readonly PathLevel[]
  /** The hashes that are given or follow from others, by level and place; the last level has only the root. */
  readonly hashes: readonly ReadonlyMap<number, Uint8Array>[]
  private readonly offsets = new Map<string, number>()

  /**
   * @param read.fail Makes the error to throw if the bytes are not a merkle path, or an inconsistent one: with a hole, or with
   * two values for one node.
   */
  constructor(bytes: Uint8Array, { hash, fail }: { hash: Hash256; fail: (message: string) => Error }) {
    const bump = readBump(bytes, fail)
    this.height = bump.height
    const tree = treeOf(bump, fail)
    this.levels = tree.levels
    this.hashes = workOut(tree, { hash, fail })
    const root = this.hashes.at(-1)?.get(0)
    if (root === undefined) throw fail('a merkle path has no leaf for a transaction')
    this.root = toHex(reversed(root))
    this.depth = this.hashes.length - 1
    for (const [offset, { hash }] of tree.levels[0] ?? []) {
      if (hash === undefined) continue
      const txid = toHex(reversed(hash))
      // If a transaction occurs twice, as the last of a block may, the SDK cuts out the last.
      this.offsets.set(txid, Math.max(offset, this.offsets.get(txid) ?? 0))
    }
  }

  /** The leaves of the lowest level, including siblings of transactions, hex in shown order. */
  get txids(): Iterable<string> {
    return this.offsets.keys()
  }

  has(txid: string): boolean {
    return this.offsets.has(txid)
  }

  /** The place of a transaction in its block, the coinbase first; undefined if it is not in the path. */
  offsetOf(txid: string): number | undefined {
    return this.offsets.get(txid)
  }
}

/**
 * The part of a path that proves one transaction, as bytes: its leaf, and the sibling at each level.
 *
 * @returns undefined if the transaction is not in the path.
 */
export function cutPath(path: MerklePath, txid: string): Uint8Array | undefined {
  const { height, hashes } = path
  const offset = path.offsetOf(txid)
  if (offset === undefined) return undefined
  const levels = path.levels.map((given, level): PathLevel => {
    const at = offset >>> level
    const hash = hashes[level]?.get(at ^ 1)
    const beside = given.get(at ^ 1) ?? { hash, isTxid: false }
    // A transaction alone in its block has no sibling.
    const leaves: PathLevel = hashes.length === 1 ? new Map() : new Map([[at ^ 1, beside]])
    if (level === 0) leaves.set(at, { hash: hashes[0]?.get(at), isTxid: true })
    return leaves
  })
  return encodeBump({ height, levels })
}

interface Tree {
  levels: PathLevel[]
  /** The last given place of the lowest level. */
  last: number
  /** Whether the place after the last repeats it implicitly. */
  isWholeBlock: boolean
  /** A block of one transaction has no levels above it: its txid is the root. */
  isAlone: boolean
}

/** The levels that a path gives, and those that it leaves out above them. */
function treeOf({ levels }: Bump, fail: (message: string) => Error): Tree {
  const [lowest = new Map<number, PathNode>()] = levels
  let last = 0
  for (const offset of lowest.keys()) last = Math.max(last, offset)
  const needed = last.toString(2).length
  // One that lists a whole block leaves out all levels above; any other has as many as the tree.
  if (levels.length > 1 && needed > levels.length)
    throw fail('a merkle path has fewer levels than the offsets of its transactions need')
  const height = Math.max(levels.length, needed)
  return {
    levels: Array.from({ length: height }, (_, level) => levels[level] ?? new Map()),
    last,
    // A path of one level lists all transactions of a block, and omits the repeated last leaf of an odd level.
    isWholeBlock: levels.length === 1,
    isAlone: levels.length === 1 && lowest.size === 1 && last === 0,
  }
}

/** The hashes of each level that are given or follow from those below; of the last level, the root's alone. */
function workOut(
  { levels, last, isWholeBlock, isAlone }: Tree,
  { hash, fail }: { hash: Hash256; fail: (message: string) => Error },
): Map<number, Uint8Array>[] {
  let known = new Map<number, Uint8Array>()
  addGiven(known, levels[0], fail)
  const hashes = [known]
  // The nodes that the transactions lead to.
  let led = new Set(known.keys())
  for (let level = 0; level < levels.length && !isAlone; level++) {
    const above = new Map<number, Uint8Array>()
    for (const [at, left] of known) {
      if (at % 2 === 1) continue
      const beside = levels[level]?.get(at + 1)
      const isDoubled =
        beside?.hash === undefined && (beside !== undefined || (isWholeBlock && at === last >>> level))
      const right = known.get(at + 1) ?? (isDoubled ? left : undefined)
      if (right !== undefined) above.set(at >>> 1, hash(concatBytes(left, right)))
    }
    const next = new Set<number>()
    for (const at of led) {
      if (!above.has(at >>> 1)) throw fail('a merkle path is incomplete')
      next.add(at >>> 1)
    }
    addGiven(above, levels[level + 1], fail)
    hashes.push(above)
    known = above
    led = next
  }
  return hashes
}

/** @throws what `fail` makes if a given node is not the hash of those below it. */
function addGiven(
  known: Map<number, Uint8Array>,
  given: PathLevel | undefined,
  fail: (message: string) => Error,
): void {
  for (const [at, { hash }] of given ?? []) {
    const made = known.get(at)
    if (made === undefined && hash !== undefined) known.set(at, hash)
    else if (made !== undefined && (hash === undefined || !equalBytes(made, hash)))
      throw fail('a merkle path has a node that is not the hash of those below it')
  }
}
