import { createHash } from 'node:crypto'
import { type ChainTracker, MerklePath } from '@bsv/sdk'
import { fromHex, joinBytes, reversed, toHex } from '../../backend/src/protocol/bytes.js'
import type { FakeTransaction } from '../../test/support/protocol/fake-chain.js'
import { varint } from '../../test/support/protocol/raw-transaction.js'
import type { Forest } from './forest.js'

/** A block of a plain chain. `root` is hex in shown order. */
export interface PlainBlock {
  height: number
  root: string
  /** The first is fake, and of no other block. */
  leaves: string[]
}

/** The height of the first block, which no reorg reaches. */
export const FIRST_HEIGHT = 800_000

/**
 * A chain of blocks in memory that can be reorganised, and the tracker that knows its roots. No headers and no work: what a
 * tracker is asked is a root and a height.
 */
export class PlainChain implements ChainTracker {
  readonly blocks: PlainBlock[] = []
  /** Each block that was ever mined, by its root. */
  readonly everMined = new Map<string, PlainBlock>()

  /** Mines a block with these transactions on top. */
  mine(txids: readonly string[]): PlainBlock {
    const leaves = [sha256(Buffer.from(`block ${this.everMined.size}`)).toString('hex'), ...txids]
    const root = levels(leaves).at(-1)?.[0] ?? ''
    const block = { height: FIRST_HEIGHT + this.blocks.length, root, leaves }
    this.blocks.push(block)
    this.everMined.set(root, block)
    return block
  }

  /** Takes the last blocks away, but never the first one. */
  takeBack(count: number): PlainBlock[] {
    return this.blocks.splice(Math.max(1, this.blocks.length - count))
  }

  /** The block that holds a transaction now. */
  blockOf(txid: string): PlainBlock | undefined {
    return this.blocks.find(({ leaves }) => leaves.includes(txid))
  }

  accepts({ height, root }: { height: number; root: string }): boolean {
    return this.blocks[height - FIRST_HEIGHT]?.root === root
  }

  async isValidRootForHeight(root: string, height: number): Promise<boolean> {
    return this.accepts({ height, root })
  }

  async currentHeight(): Promise<number> {
    return FIRST_HEIGHT + this.blocks.length - 1
  }
}

/** The merkle path of a transaction in a block. */
export function pathIn({ height, leaves }: PlainBlock, txid: string): MerklePath {
  const index = leaves.indexOf(txid)
  const path = levels(leaves)
    .slice(0, -1)
    .map((level, depth) => {
      const offset = (index >> depth) ^ 1
      const hash = level[offset]
      return [hash === undefined ? { offset, duplicate: true } : { offset, hash }]
    })
  const own = [{ offset: index, hash: txid, txid: true }, ...(path[0] ?? [])]
  return new MerklePath(height, [own.sort((a, b) => a.offset - b.offset), ...path.slice(1)])
}

/** The hashes of a merkle tree from its leaves up to its root; an odd one out is hashed with itself. */
function levels(leaves: string[]): string[][] {
  const all = [leaves]
  for (let level = leaves; level.length > 1; all.push(level)) {
    const below = level
    level = Array.from({ length: Math.ceil(below.length / 2) }, (_, i) => {
      const left = below[2 * i] ?? ''
      const pair = joinBytes([left, below[2 * i + 1] ?? left].map((hash) => reversed(fromHex(hash))))
      return toHex(reversed(sha256(sha256(pair))))
    })
  }
  return all
}

function sha256(bytes: Uint8Array): Buffer {
  return createHash('sha256').update(bytes).digest()
}

/** A transaction in a BEEF, and its path where it comes with one. */
export interface Enclosed {
  transaction: FakeTransaction
  block?: PlainBlock
}

/** A BEEF (BRC-62) of these, which stand parents first; the last is the subject. */
export function beefOfAll(members: readonly Enclosed[]): Uint8Array {
  const paths: Uint8Array[] = []
  const transactions: Uint8Array[] = []
  for (const { transaction, block } of members) {
    transactions.push(transaction.raw)
    if (block === undefined) {
      transactions.push(Uint8Array.of(0))
      continue
    }
    transactions.push(Uint8Array.of(1), varint(paths.length))
    paths.push(Uint8Array.from(pathIn(block, transaction.txid).toBinary()))
  }
  return joinBytes([
    fromHex('0100beef'),
    varint(paths.length),
    ...paths,
    varint(members.length),
    ...transactions,
  ])
}

/** Some of the transactions of a forest that the next block of a chain may hold; chance says which. */
export function minableIn(
  chain: PlainChain,
  { transactions, byTxid }: Pick<Forest, 'transactions' | 'byTxid'>,
  {
    chance,
    instead,
  }: {
    chance: () => number /** Blocks that transactions conflicting with what they held go before. */
    instead: PlainBlock[]
  },
): string[] {
  const mined = new Set(chain.blocks.flatMap(({ leaves }) => leaves))
  const spentBy = (txids: Iterable<string>) =>
    new Set([...txids].flatMap((txid) => byTxid.get(txid)?.spends ?? []))
  const spent = spentBy(mined)
  const replaced = instead.flatMap(({ leaves }) => leaves)
  const contested = spentBy(replaced)
  const block: string[] = []
  const add = (some: typeof transactions, share: number): void => {
    for (const { txid, spends } of some) {
      const fits = spends.every((each) => mined.has(each.slice(0, 64)) && !spent.has(each))
      if (mined.has(txid) || !fits || chance() > share) continue
      block.push(txid)
      mined.add(txid)
      for (const each of spends) spent.add(each)
    }
  }
  const isConflicting = ({ txid, spends }: (typeof transactions)[number]): boolean =>
    !replaced.includes(txid) && spends.some((each) => contested.has(each))
  add(transactions.filter(isConflicting), 0.8)
  add(transactions, 0.5)
  return block
}

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
export function numbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}
