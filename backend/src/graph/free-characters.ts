import { ascii } from '../protocol/bytes.js'
import { isClaimed, mineNodeIn, NAME_CHARACTERS } from '../protocol/mine-node.js'
import type { Outpoint } from '../protocol/outpoint.js'
import { lockingScriptOf, type RawSource } from './stored-transaction.js'

/** A node's script has some thousand bytes, and comes first in its transaction. */
const REACH = { longest: 64 * 1024, chunks: 16 }

/**
 * The characters that can still be mined from a live node, in the order of names. Undefined if its script is not stored, or too
 * far into a large transaction.
 *
 * @param node A genuine node.
 */
export function freeCharacters(store: RawSource, node: Outpoint): string | undefined {
  const script = lockingScriptOf(node, store, REACH)
  const tree = script && mineNodeIn(script)
  return tree && ORDERED.filter((character) => !isClaimed(tree.claimed, ascii(character)[0] ?? 0)).join('')
}

/** By their bytes, as names are sorted. */
const ORDERED = [...NAME_CHARACTERS].sort()
