import { ByteCursor } from '../../backend/src/protocol/byte-cursor.js'
import { concatBytes, reversed, toHex } from '../../backend/src/protocol/bytes.js'
import type { Hash256 } from '../../backend/src/protocol/transaction.js'
import { ProofError } from './proof-error.js'

/** Where a merkle path says that a transaction is. */
export interface Place {
  height: number
  /** The merkle root that the path leads to, hex in shown order. */
  root: string
}

/** Heights are 32-bit where block headers are. */
const MAX_HEIGHT = 0x7fffffff
/** Levels above the transactions: a block of 2^32 of them. */
const MAX_LEVELS = 32
const MAX_OFFSET = 2 ** MAX_LEVELS - 1

/** A hash in internal order, or the word that the node to the left stands here again. */
type Leaf = Uint8Array | 'duplicate'
type Level = Map<number, Leaf>

/**
 * The merkle paths (BUMP, BRC-74) of a BEEF, asked by txid.
 *
 * The SDK's `MerklePath` works out every inner node anew for every transaction of a path, so that a stranger's path of
 * some thousand leaves keeps it busy for minutes. Here each is worked out once.
 */
export class MerklePaths {
  private readonly paths: Path[]
  private readonly byTxid = new Map<string, { path: Path; offset: number }>()

  /** @throws ProofError `BAD_PATH` where one cannot be read. */
  constructor(bumps: readonly Uint8Array[], hash: Hash256) {
    this.paths = bumps.map((bump) => new Path(bump, hash))
    for (const path of this.paths)
      for (const [offset, leaf] of path.transactions) {
        const txid = leaf === 'duplicate' ? undefined : toHex(reversed(leaf))
        if (txid !== undefined && !this.byTxid.has(txid)) this.byTxid.set(txid, { path, offset })
      }
  }

  /** Whether there is a path for a transaction, wherever it leads. */
  has(txid: string): boolean {
    return this.byTxid.has(txid)
  }

  /**
   * Where the first path that has the transaction among its leaves says it is; undefined where none has.
   *
   * @throws ProofError `BAD_PATH` where that path does not reach a root.
   */
  place(txid: string): Place | undefined {
    const found = this.byTxid.get(txid)
    if (found === undefined) return undefined
    const { path, offset } = found
    return { height: path.height, root: path.rootFrom(offset) }
  }
}

class Path {
  readonly height: number
  private readonly levels: Level[] = []
  /** What was worked out of the levels, undefined where they do not tell. */
  private readonly inner = new Map<string, Uint8Array | undefined>()
  private readonly maxOffset: number

  constructor(
    bump: Uint8Array,
    private readonly hash: Hash256,
  ) {
    const cursor = new ByteCursor(bump, badPath)
    this.height = cursor.varint()
    if (this.height > MAX_HEIGHT) throw badPath(`no block has the height ${this.height}`)
    const levels = cursor.u8()
    if (levels === 0 || levels > MAX_LEVELS) throw badPath(`a merkle path has 1 to ${MAX_LEVELS} levels`)
    for (let level = 0; level < levels; level++) this.levels.push(readLevel(cursor))
    let last = 0
    for (const offset of this.transactions.keys()) last = Math.max(last, offset)
    this.maxOffset = last
  }

  /** The leaves of the lowest level by their places in the block. */
  get transactions(): ReadonlyMap<number, Leaf> {
    return this.levels[0] ?? new Map()
  }

  rootFrom(offset: number): string {
    let node = this.transactions.get(offset)
    if (node === undefined || node === 'duplicate') throw badPath('a merkle path starts at no transaction')
    const levels = this.heightOfTree()
    for (let level = 0, at = offset; level < levels; level++, at = Math.floor(at / 2)) {
      const isRight = at % 2 === 1
      const sibling = this.node(level, isRight ? at - 1 : at + 1) ?? this.beyondTheLast(level, at)
      if (sibling === undefined) throw badPath('a merkle path has a hole')
      if (isRight && sibling === 'duplicate') throw badPath('a merkle path doubles a node to the right of it')
      const other = sibling === 'duplicate' ? node : sibling
      node = this.hash(isRight ? concatBytes(other, node) : concatBytes(node, other))
    }
    return toHex(reversed(node))
  }

  /** A block of one transaction has no levels above it: its txid is the root. */
  private heightOfTree(): number {
    const isAlone = this.levels.length === 1 && this.transactions.size === 1 && this.maxOffset === 0
    return isAlone ? 0 : Math.max(this.levels.length, this.maxOffset.toString(2).length)
  }

  /** A path that lists all transactions of a block and nothing else leaves out that the last node stands twice. */
  private beyondTheLast(level: number, at: number): Leaf | undefined {
    return this.levels.length === 1 && at === this.lastAt(level) ? 'duplicate' : undefined
  }

  private lastAt(level: number): number {
    return Math.floor(this.maxOffset / 2 ** level)
  }

  /** A node that is given, or that follows from those below it. */
  private node(level: number, at: number): Leaf | undefined {
    const given = this.levels[level]?.get(at)
    if (given !== undefined || level === 0) return given
    const key = `${level} ${at}`
    if (this.inner.has(key)) return this.inner.get(key)
    const left = this.node(level - 1, 2 * at)
    const right = this.node(level - 1, 2 * at + 1) ?? this.beyondTheLast(level - 1, 2 * at)
    const known = left !== undefined && left !== 'duplicate' && right !== undefined
    const made = known ? this.hash(concatBytes(left, right === 'duplicate' ? left : right)) : undefined
    this.inner.set(key, made)
    return made
  }
}

function readLevel(cursor: ByteCursor): Level {
  const level: Level = new Map()
  for (let left = cursor.varint(); left > 0; left--) {
    const offset = cursor.varint()
    if (offset > MAX_OFFSET) throw badPath('a leaf of a merkle path stands beyond any block')
    if (level.has(offset)) throw badPath('a merkle path has two leaves in one place')
    const isDuplicate = (cursor.u8() & 1) === 1
    level.set(offset, isDuplicate ? 'duplicate' : cursor.take(32))
  }
  return level
}

function badPath(message: string): ProofError {
  return new ProofError('BAD_PATH', message)
}
