import { type RawSource, storedOutput } from '../graph/stored-transaction.js'
import { ascii } from '../protocol/bytes.js'
import { isClaimed, mineNodeIn, NAME_CHARACTERS } from '../protocol/mine-node.js'
import { type MiningCost, miningCost } from '../protocol/mint-cost.js'
import type { Outpoint } from '../protocol/outpoint.js'
import type { GraphReads } from './fact-store.js'

export type NameOffer =
  | { kind: 'taken' }
  /** The tree cannot have such a name, or there is no tree here. */
  | { kind: 'impossible' }
  | ({ kind: 'free' /** The longest prefix that is mined. */; domain: string } & MiningCost)

export interface TreeTerms {
  /** The zero bits of a solution. */
  difficulty: number
  /** How many characters a name can have. */
  longestName: number
}

/**
 * Whether names are free; mints that nobody has seen count, too. Takes three indexed reads for each name.
 *
 * @throws BlockedError for a name that the operator has blocked.
 */
export function nameOffers({
  names,
  transactions,
}: Pick<GraphReads, 'names' | 'transactions'>): (name: string, tree: TreeTerms | undefined) => NameOffer {
  const known = new Map<string, number | undefined>()
  return (name, tree) => {
    const node = names.longestNode(name)
    if (node?.domain === name) return { kind: 'taken' }
    if (tree === undefined || node === undefined || name.length > tree.longestName)
      return { kind: 'impossible' }
    const { domain, outpoint } = node
    if (!known.has(domain)) known.set(domain, storedOutput(outpoint, transactions)?.lockingScript.length)
    const { difficulty } = tree
    return {
      kind: 'free',
      domain,
      ...miningCost({ name, domain, difficulty, nodeBytes: known.get(domain) }),
    }
  }
}

/**
 * The characters that can still be mined from a live node, in the order of names. Undefined if its script is not stored, or too
 * far into a large transaction.
 *
 * @param node A genuine node.
 */
export function freeCharacters(store: RawSource, node: Outpoint): string | undefined {
  const script = storedOutput(node, store)?.lockingScript
  const tree = script && mineNodeIn(script)
  return tree && ORDERED.filter((character) => !isClaimed(tree.claimed, ascii(character)[0] ?? 0)).join('')
}

/** By their bytes, as names are sorted. */
const ORDERED = [...NAME_CHARACTERS].sort()
