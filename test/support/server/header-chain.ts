import type { MerklePath } from '@bsv/sdk'
import { nativeHash256 } from '../../../backend/src/graph/native-hash.js'
import type { Proof } from '../../../backend/src/graph/records.js'
import { encodeBeef } from '../../../backend/src/graph/write-beef.js'
import {
  concatBytes,
  fromHex,
  joinBytes,
  reversed,
  toHex,
  utf8,
} from '../../../backend/src/protocol/bytes.js'
import { encodeBump, type PathNode } from '../../../backend/src/protocol/merkle-path.js'
import { encodePush } from '../../../backend/src/protocol/script-walk.js'
import { type FakeTransaction, OPEN_LOCK } from '../protocol/fake-chain.js'
import { levelsOf, pathIn } from '../protocol/merkle-trees.js'
import { encodeTransaction } from '../protocol/raw-transaction.js'

/** What a header needs to know of a transaction. */
type Mined = Pick<FakeTransaction, 'txid' | 'raw'>

/** A block header; hashes are hex in shown order. */
export interface Header {
  height: number
  /** The 80 bytes that the hash is of. */
  bytes: Uint8Array
  hash: string
  previous: string
  root: string
  /** Seconds since 1970. */
  time: number
  bits: number
  nonce: number
}

/** A block: a header that its work fits, a coinbase, and what else was mined in it. */
export class Block {
  readonly header: Header
  readonly coinbase: Mined
  /** The txids of its merkle tree, the coinbase first. */
  readonly txids: string[]
  /** The hashes of its merkle tree, the txids first. */
  private readonly levels: string[][]
  /** The blocks behind it that hold nothing, by their salt: chains share them, as making them takes longer than most tests. */
  private readonly empty = new Map<string, Block>()

  constructor(
    readonly parent: Block | undefined,
    options: {
      height: number
      salt: string
      transactions: readonly Mined[]
      time?: number | undefined
      root?: string | undefined
    },
  ) {
    const { height, salt, transactions, time = 1_700_000_000 + SPACING * (height - FIRST_HEIGHT) } = options
    this.coinbase = coinbase(height, salt)
    this.txids = [this.coinbase.txid, ...transactions.map(({ txid }) => txid)]
    this.levels = levelsOf(this.txids)
    const { root = this.levels.at(-1)?.[0] ?? '' } = options
    this.header = findHeader({
      height,
      previous: parent?.header.hash ?? '00'.repeat(32),
      root,
      time: parent === undefined ? time : parent.header.time + SPACING,
    })
  }

  /** The block behind it that holds nothing. */
  next(salt: string): Block {
    const height = this.header.height + 1
    const next = this.empty.get(salt) ?? new Block(this, { height, salt, transactions: [] })
    this.empty.set(salt, next)
    return next
  }

  /** The merkle path of one of its transactions. Throws where it is none. */
  path(txid: string): MerklePath {
    const index = this.txids.indexOf(txid)
    if (index === -1) throw new Error(`the block at ${this.header.height} does not hold ${txid}`)
    return pathIn(this.levels, { index, height: this.header.height })
  }

  /** The same path as a store keeps it, written without the SDK, which takes milliseconds. */
  proof(txid: string): Proof {
    const index = this.txids.indexOf(txid)
    if (index === -1) throw new Error(`the block at ${this.header.height} does not hold ${txid}`)
    const { height, root } = this.header
    const levels = this.levels.slice(0, Math.max(1, this.levels.length - 1)).map((hashes, level) => {
      const offset = (index >> level) ^ 1
      const hash = hashes[offset]
      const nodes = new Map<number, PathNode>()
      if (level === 0) nodes.set(index, { hash: inner(txid), isTxid: true })
      if (hashes.length > 1)
        nodes.set(offset, { hash: hash === undefined ? undefined : inner(hash), isTxid: false })
      return nodes
    })
    return { merklePath: encodeBump({ height, levels }), height, root }
  }
}

/** A line of blocks from the first to a tip that it mines on. Branches share the blocks up to where they part. */
export class Branch {
  constructor(
    private last: Block,
    private readonly salt: string,
  ) {}

  get tip(): Header {
    return this.last.header
  }

  /**
   * Mines a block of these transactions. What height it gets, the branch says, not the transactions.
   *
   * @param root Of transactions that nobody shows, instead of that of these.
   */
  mine(transactions: readonly Mined[] = [], root?: string): Block {
    const { tip, salt, last } = this
    const isEmpty = transactions.length === 0 && root === undefined
    this.last = isEmpty
      ? last.next(salt)
      : new Block(last, { height: tip.height + 1, salt, transactions, root })
    return this.last
  }

  /** The block of a height; undefined above the tip and below the first. */
  block(height: number): Block | undefined {
    let block: Block | undefined = this.last
    while (block !== undefined && block.header.height > height) block = block.parent
    return block?.header.height === height ? block : undefined
  }

  /** The blocks from the tip down to the first. */
  *blocks(): Generator<Block> {
    for (let block: Block | undefined = this.last; block !== undefined; block = block.parent) yield block
  }

  /** The merkle path of a transaction that was mined in this branch; undefined where it was not. */
  path(txid: string): MerklePath | undefined {
    return this.blockOf(txid)?.path(txid)
  }

  /** The same as a store keeps it. */
  proof(txid: string): Proof | undefined {
    return this.blockOf(txid)?.proof(txid)
  }

  private blockOf(txid: string): Block | undefined {
    for (const block of this.blocks()) if (block.txids.includes(txid)) return block
    return undefined
  }

  /** A BEEF with the subject last: whatever was mined in this branch has its path, and the rest none. */
  beef(subject: Mined, ancestors: readonly Mined[] = []): Uint8Array {
    return encodeBeef(
      [...ancestors, subject].map(({ txid, raw }) => {
        const proof = this.proof(txid)
        return { txid, raw, ...(proof && { proof }) }
      }),
    )
  }
}

/** The first blocks of chains, by height and time. */
const firsts = new Map<string, Block>()

/** A chain of real headers over real merkle trees, that can fork. Its work is as easy as that of a regression test network. */
export class HeaderChain {
  /** The lowest header. */
  readonly first: Header
  private active: Branch
  private forks = 0

  /** @param time When its first block was mined, in seconds since 1970; by default, some time in the past. */
  constructor(height: number = FIRST_HEIGHT, time?: number) {
    const key = `${height} ${time}`
    const first = firsts.get(key) ?? new Block(undefined, { height, salt: 'main', transactions: [], time })
    firsts.set(key, first)
    this.first = first.header
    this.active = new Branch(first, 'main')
  }

  /** The branch that counts: the longest, as all blocks have the same work. */
  get branch(): Branch {
    return this.active
  }

  get bestTip(): Header {
    return this.active.tip
  }

  /** Mines on the branch that counts. */
  mine(transactions: readonly Mined[] = []): Block {
    return this.active.mine(transactions)
  }

  /** Mines blocks with nothing in them on the branch that counts. */
  grow(count: number): void {
    for (let left = count; left > 0; left--) this.active.mine()
  }

  /** A branch that leaves the one that counts behind the block of a height. Nobody knows of it before {@link reorg}. */
  fork(height: number): Branch {
    const block = this.active.block(height)
    if (block === undefined) throw new Error(`there is no block at ${height} to fork behind`)
    this.forks++
    return new Branch(block, `fork ${this.forks}`)
  }

  /** Lets another branch count. Throws where it has not more work: no node would follow it. */
  reorg(branch: Branch): void {
    if (branch.tip.height <= this.bestTip.height) throw new Error('the other branch is not longer')
    this.active = branch
  }

  rootAt(height: number): string | undefined {
    return this.active.block(height)?.header.root
  }

  isOnChain({ height, hash }: Header): boolean {
    return this.active.block(height)?.header.hash === hash
  }
}

/** A chain whose blocks at some heights have these roots, of transactions that nobody shows. */
export function chainWithRoots(roots: ReadonlyMap<number, string>): HeaderChain {
  const heights = [...roots.keys()]
  const chain = new HeaderChain(Math.min(...heights) - 1)
  while (chain.bestTip.height < Math.max(...heights))
    chain.branch.mine([], roots.get(chain.bestTip.height + 1))
  return chain
}

/** Of the first block of a {@link HeaderChain}. */
export const FIRST_HEIGHT = 800_000
/** Between blocks, in seconds. */
export const SPACING = 600
/** The easiest target there is (that of regression test networks): every second hash meets it. */
const EASIEST_BITS = 0x207fffff

/** A coinbase that no other block has: it names its height (BIP 34) and its branch. Any push opens its output. */
function coinbase(height: number, salt: string): Mined {
  const spent = { txid: '00'.repeat(32), vout: 0xffffffff }
  const unlockingScript = concatBytes(encodePush(u32(height)), encodePush(utf8(salt)))
  const raw = encodeTransaction({
    inputs: [{ outpoint: spent, unlockingScript }],
    outputs: [{ satoshis: 312_500_000, lockingScript: OPEN_LOCK }],
  })
  return { txid: shownHash(raw), raw }
}

function findHeader(parts: Pick<Header, 'height' | 'previous' | 'root' | 'time'>): Header {
  const { previous, root, time } = parts
  const bits = EASIEST_BITS
  for (let nonce = 0; ; nonce++) {
    const bytes = joinBytes([u32(1), inner(previous), inner(root), u32(time), u32(bits), u32(nonce)])
    const hash = shownHash(bytes)
    if (meetsTarget(hash, bits)) return { ...parts, bytes, hash, bits, nonce }
  }
}

/** Whether a hash, read as a number, is at most the target that `bits` stand for: a base-256 exponent and three digits. */
export function meetsTarget(hash: string, bits: number): boolean {
  const target = BigInt(bits & 0x7fffff) << BigInt(8 * ((bits >>> 24) - 3))
  return BigInt(`0x${hash}`) <= target
}

function shownHash(bytes: Uint8Array): string {
  return toHex(reversed(nativeHash256(bytes)))
}

function inner(hash: string): Uint8Array {
  return reversed(fromHex(hash))
}

function u32(value: number): Uint8Array {
  return reversed(fromHex(value.toString(16).padStart(8, '0')))
}
