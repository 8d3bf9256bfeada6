import { equalBytes } from '../../backend/src/protocol/bytes.js'
import { messageOf } from '../../backend/src/protocol/coded-error.js'
import type { Deployment } from '../../backend/src/protocol/mint.js'
import { formatOutpoint, type Outpoint } from '../../backend/src/protocol/outpoint.js'
import { ProofError } from '../client/errors.js'
import { type VerifiedNode, verifyNameMint, verifyNode } from '../client/verify-name.js'
import type { Trust } from '../client/verify-transactions.js'
import type { MineIndex } from './mine-index.js'
import { MiningError } from './mining-error.js'

/** An index to ask about a name, and what its answer is verified against. */
interface NodeQuestion extends Trust {
  name: string
  deployment: Deployment
  index: Pick<MineIndex, 'liveNode' | 'showNode'>
}

/**
 * The node that an index shows for a name, verified; undefined if it says that the name is taken.
 *
 * @param after A node that it has to descend from.
 * @throws MiningError `BAD_PROOF`, `BAD_INDEX`; HeadersError.
 */
export async function verifiedLiveNode(
  question: NodeQuestion,
  after?: Outpoint,
): Promise<VerifiedNode | undefined> {
  const { name, index } = question
  // Asked first because the evidence alone does not tell a name that is taken from a tree that does not exist.
  if ((await index.liveNode(name)) === undefined) return undefined
  const shown = await index.showNode(name)
  if (shown === undefined) return undefined
  let node: VerifiedNode
  try {
    node = await verifyNode({ ...question, ...shown, after })
  } catch (cause) {
    if (!(cause instanceof ProofError)) throw cause
    const outpoint = formatOutpoint(shown.outpoint)
    throw new MiningError('BAD_PROOF', `the index shows the node ${outpoint}: ${cause.message}`, { cause })
  }
  if (!name.startsWith(node.domain) || node.domain === name)
    throw new MiningError(
      'BAD_INDEX',
      `the index shows the node of ${JSON.stringify(node.domain)}, from which ${name} cannot be mined`,
    )
  return node
}

/** Whether the index still says that a node is the one to mine a name from. */
export async function isLive(
  index: Pick<MineIndex, 'liveNode'>,
  { name, node }: { name: string; node: Pick<VerifiedNode, 'outpoint'> },
): Promise<boolean> {
  const live = await index.liveNode(name)
  return live !== undefined && formatOutpoint(live.outpoint) === formatOutpoint(node.outpoint)
}

/** How often an index is asked for the mint that spent a node: of several servers behind one URL, one may lag. */
const ATTEMPTS = 3
const PAUSE = 1_000

/**
 * Where to continue when an index says that a node was spent: a verified node that descends from it, or undefined if the
 * index says that the whole name is taken.
 *
 * @param moved.cause Why the node is said to be spent.
 * @param moved.mayBeLive Whether the index may take that back.
 * @param moved.pause Milliseconds between attempts, if less than the default.
 * @throws MiningError `NO_RIVAL` if the index shows no mint that spends the node.
 */
export async function successorNode(
  question: NodeQuestion,
  moved: { name: string; node: VerifiedNode; cause: unknown; mayBeLive?: boolean; pause?: number },
): Promise<VerifiedNode | undefined> {
  const { name, node, cause, mayBeLive = false, pause = PAUSE } = moved
  const { outpoint } = node
  for (let attempt = 1; ; attempt++) {
    try {
      return await verifiedLiveNode(question, outpoint)
    } catch (error) {
      if (!(error instanceof MiningError) || error.code !== 'BAD_PROOF') throw error
      if (mayBeLive && (await isLive(question.index, { name, node }))) return node
      if (attempt === ATTEMPTS)
        throw new MiningError(
          'NO_RIVAL',
          `the index says that ${formatOutpoint(outpoint)} is spent (${messageOf(cause)}), but shows no mint that spends it: ${error.message}`,
          { cause: error },
        )
    }
    await new Promise((resume) => setTimeout(resume, Math.min(PAUSE, pause)))
    question.signal?.throwIfAborted()
  }
}

/** A mint that gives a name to the requested owner. */
export interface OwnersMint {
  txid: string
  /** Whether it and all mints before it are in blocks that the chain tracker knows. */
  proven: boolean
}

/**
 * The mint of a name, if it gives the name to the requested owner. Anyone who sees a mint can put its solution into
 * another transaction, with another txid; in a tree of covenant version 2, that one gives the name to the same owner.
 *
 * @param asked.nameScript Output 2 of a mint of the name for the owner: the lock, and what the covenant writes after it.
 * @returns Undefined if the index shows no such mint, or none that holds.
 * @throws HeadersError if the chain tracker does not answer; the reason of the signal.
 */
export async function ownersMint(
  asked: Trust & {
    name: string
    nameScript: Uint8Array
    deployment: Deployment
    index: Pick<MineIndex, 'showName'>
  },
): Promise<OwnersMint | undefined> {
  const { name, nameScript, index, signal } = asked
  try {
    const beef = await index.showName(name)
    if (beef === undefined) return undefined
    const { origin, proven, lockingScript } = await verifyNameMint({ ...asked, beef })
    return equalBytes(lockingScript, nameScript) ? { txid: origin.txid, proven } : undefined
  } catch (error) {
    signal?.throwIfAborted()
    if (error instanceof ProofError || error instanceof MiningError) return undefined
    throw error
  }
}
