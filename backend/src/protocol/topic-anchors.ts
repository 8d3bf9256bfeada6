import { concatBytes } from './bytes.js'
import type { Hash256 } from './transaction.js'

/*
 * Topic anchors (BASM, BRC-136): what a topic admitted of each block, as one hash a block, and one for all blocks up to it. Hashes are in
 * internal order.
 */

/** Of a block from which nothing was admitted, and before the first block of a topic. */
export const NO_HASH = new Uint8Array(32)

/** The root over admitted transactions of a block, in its order. An odd node is paired with itself. */
export function anchorRoot(txids: readonly Uint8Array[], hash: Hash256): Uint8Array {
  let level = txids
  while (level.length > 1) {
    const above: Uint8Array[] = []
    for (const [at, left] of level.entries())
      if (at % 2 === 0) above.push(hash(concatBytes(left, level[at + 1] ?? left)))
    level = above
  }
  return level[0] ?? NO_HASH
}

/** The hash over all blocks up to one, from that up to the block before. */
export function nextAnchor(
  before: Uint8Array,
  block: { hash: Uint8Array; root: Uint8Array },
  hash: Hash256,
): Uint8Array {
  return hash(concatBytes(before, block.hash, block.root))
}
