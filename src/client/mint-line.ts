import { type Deployment, MintError } from '../../backend/src/protocol/mint.js'
import { followMint, followUnprovenMint } from '../../backend/src/protocol/mint-outputs.js'
import { formatOutpoint, type Outpoint } from '../../backend/src/protocol/outpoint.js'
import type { Bundle, Spender } from './bundle.js'
import { ProofError } from './proof-error.js'

/** A mint that descends from the genesis, each step down to it checked. */
export interface GenuineMint {
  /** That it claims. */
  name: string
  txid: string
  /** The mint that left the node which this one spends; undefined where that is the genesis. */
  parent: GenuineMint | undefined
}

/** Which output of a mint holds the name (service.md 2.7). */
export const NAME_VOUT = 2
/** The outputs of a mint that are nodes. */
export const NODE_VOUTS: readonly number[] = [0, 1]

/**
 * The mints of a bundle that descend from the genesis, by their txids (protocol.md 6 and 7). Nothing is taken by
 * pattern: the genesis outpoint is genuine because the caller says so, and from there on the nodes that a checked mint
 * leaves are, and no others. A copy of the covenant, with whatever state, is none of them.
 *
 * @throws ProofError `NO_GENESIS`; `BAD_MINT` where a transaction that spends a genuine node breaks a rule of mints.
 */
export function readMints(bundle: Bundle, deployment: Deployment): Map<string, GenuineMint> {
  const { genesis } = deployment
  if (bundle.output(genesis) === undefined)
    throw new ProofError('NO_GENESIS', `the genesis ${formatOutpoint(genesis)} is not in the proof`)
  const mints = new Map<string, GenuineMint>()
  const spent = new Map<string, { node: Outpoint; spender: Spender; parent?: GenuineMint }>()
  const addNode = (node: Outpoint, parent?: GenuineMint): void => {
    const spender = bundle.spenderOf(node)
    if (spender === undefined) return
    const { txid } = spender.transaction
    if (spent.has(txid)) throw badMint(txid, 'it spends more than one node')
    spent.set(txid, { node, spender, ...(parent && { parent }) })
  }
  addNode(genesis)
  // Parents come before children, so that whatever a transaction spends of the tree is known by then.
  for (const { txid } of bundle.transactions) {
    const found = spent.get(txid)
    if (found === undefined) continue
    const { name } = checked(bundle, { ...found, deployment })
    const genuine: GenuineMint = { name, txid, parent: found.parent }
    mints.set(txid, genuine)
    for (const vout of NODE_VOUTS) addNode({ txid, vout }, genuine)
  }
  return mints
}

function checked(
  bundle: Bundle,
  { node, spender, deployment }: { node: Outpoint; spender: Spender; deployment: Deployment },
): { name: string } {
  const { transaction, input } = spender
  const output = bundle.output(node)
  try {
    // Whoever relies on a mint has it vouched for: a block holds it where it has a path, or its scripts are run.
    const follow = bundle.hasPath(transaction.txid) ? followMint : followUnprovenMint
    return follow({ transaction, input, deployment, hash: bundle.hash, ...(output && { spent: output }) })
  } catch (cause) {
    if (!(cause instanceof MintError)) throw cause
    throw badMint(transaction.txid, cause.message, cause)
  }
}

function badMint(txid: string, reason: string, cause?: MintError): ProofError {
  return new ProofError('BAD_MINT', `${txid} spends a node of the tree and is no mint: ${reason}`, { cause })
}

/** The mints from the genesis to this one, in order. */
export function lineOf(last: GenuineMint): GenuineMint[] {
  const line: GenuineMint[] = []
  for (let at: GenuineMint | undefined = last; at !== undefined; at = at.parent) line.push(at)
  return line.reverse()
}

/** The output in which a mint puts its name: the name's origin. */
export function nameOutpoint({ txid }: Pick<GenuineMint, 'txid'>): Outpoint {
  return { txid, vout: NAME_VOUT }
}
