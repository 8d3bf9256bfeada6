import { nativeHash256 } from '../../../backend/src/graph/native-hash.js'
import type { BeefContents } from '../../../backend/src/graph/read-beef.js'
import { decodeMineNode, MineNodeError } from '../../../backend/src/protocol/mine-node.js'
import type { Deployment } from '../../../backend/src/protocol/mint.js'
import { NOT_STRICT, possibleMintInputs } from '../../../backend/src/protocol/mint-outputs.js'
import { isStrictUnlocking } from '../../../backend/src/protocol/mint-unlocking.js'
import { formatOutpoint, type Outpoint } from '../../../backend/src/protocol/outpoint.js'
import {
  outputOf,
  type TransactionOutput,
  type TransactionView,
} from '../../../backend/src/protocol/transaction.js'
import { InvalidSubmissionError } from './submission-errors.js'

/**
 * Whether a transaction spends a node of the tree with another unlocking script than five minimal pushes. A block may
 * hold such a mint, and then it counts; but nodes disagree about it, so that an unproven one is refused before it is stored.
 * What is stored may then be judged by its bytes alone.
 *
 * A node is known by its script: whether it is genuine, a store may learn only later. What is spent and did not come along
 * is taken for a node where the transaction reads like a mint.
 *
 * @param options.sources Where the outputs are that it spends.
 * @param options.others Outpoints that were found to be no nodes, for calls that may ask about the same ones: an output may
 * have megabytes, and thousands may spend it.
 */
export function spendsNodeNonStrictly(
  transaction: TransactionView,
  {
    deployment,
    sources,
    others = new Set(),
  }: {
    deployment: Deployment
    sources?: Pick<BeefContents, 'transaction'>
    others?: Set<string>
  },
): boolean {
  const nonStrict = transaction.inputs.filter(({ unlockingScript }) => !isStrictUnlocking(unlockingScript))
  const unknown = new Set<Outpoint>()
  for (const input of nonStrict) {
    const source = sources?.transaction(input.txid)
    const output = source && outputOf(source, input.vout)
    if (output === undefined) {
      unknown.add(input)
      continue
    }
    const outpoint = formatOutpoint(input)
    if (others.has(outpoint)) continue
    if (isNodeOf({ output, outpoint, deployment })) return true
    others.add(outpoint)
  }
  if (unknown.size === 0) return false
  return possibleMintInputs({ transaction, deployment, hash: nativeHash256 }).some((input) => {
    const spent = transaction.inputs[input]
    return spent !== undefined && unknown.has(spent)
  })
}

/** For a transaction that {@link spendsNodeNonStrictly}, and that nothing proves. */
export function notStrictError(txid: string): InvalidSubmissionError {
  return new InvalidSubmissionError(`${txid} spends a node: ${NOT_STRICT} (NOT_STRICT)`)
}

function isNodeOf(spent: { output: TransactionOutput; outpoint: string; deployment: Deployment }): boolean {
  const { output, outpoint, deployment } = spent
  const tree = formatOutpoint(deployment.genesis)
  if (outpoint === tree) return true
  try {
    const { genesis } = decodeMineNode(output.lockingScript)
    return genesis !== undefined && formatOutpoint(genesis) === tree
  } catch (error) {
    if (error instanceof MineNodeError) return false
    throw error
  }
}
