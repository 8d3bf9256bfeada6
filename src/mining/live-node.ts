import { equalBytes } from '../../backend/src/protocol/bytes.js'
import { messageOf } from '../../backend/src/protocol/coded-error.js'
import type { Deployment } from '../../backend/src/protocol/mint.js'
import { formatOutpoint, isSameOutpoint, type Outpoint } from '../../backend/src/protocol/outpoint.js'
import { ProofError } from '../client/errors.js'
import {
  type VerifiedName,
  type VerifiedNode,
  verifyNameMint,
  verifyNode,
  type WayPoint,
} from '../client/verify-name.js'
import type { Trust } from '../client/verify-transactions.js'
import { MAX_EVIDENCE_BYTES, type MineIndex, type Shown } from './mine-index.js'
import { MiningError } from './mining-error.js'

/** A name, the index to ask about it, and what to verify its answer against. */
interface NodeQuestion extends Trust {
  name: string
  deployment: Deployment
  index: Pick<MineIndex, 'liveNode' | 'showNode'>
}

/**
 * The node that an index shows for a name, verified part by part; undefined if the index says that the name is taken.
 *
 * @param way.after A node from which it must descend.
 * @param way.from A verified node on the way.
 * @throws MiningError `BAD_PROOF`, `BAD_INDEX`; HeadersError.
 */
export async function verifiedLiveNode(
  question: NodeQuestion,
  { after, from: first }: { after?: Outpoint; from?: WayPoint } = {},
): Promise<VerifiedNode | undefined> {
  const { name, index } = question
  // Asked first, because the evidence alone cannot tell a taken name from a tree that does not exist.
  const live = await index.liveNode(name)
  if (live === undefined) return undefined
  let node: VerifiedNode | undefined
  let hasPassed = after === undefined
  for (;;) {
    const from: WayPoint | undefined = node ?? first
    const shown = await index.showNode(name, from && [from.outpoint])
    if (shown === undefined) return undefined
    // The index shows the same node again: the live node has moved since it was asked for.
    if (node !== undefined && isSameOutpoint(shown.outpoint, node.outpoint)) break
    node = await verifiedPart(question, { ...shown, from })
    hasPassed ||= node.passed.some((each) => after !== undefined && isSameOutpoint(each, after))
    if (isSameOutpoint(node.outpoint, live.outpoint)) break
  }
  if (!hasPassed) {
    const [shown, spent] = [node.outpoint, after].map((each) => each && formatOutpoint(each))
    throw new MiningError('BAD_PROOF', `the index shows the node ${shown}: it does not descend from ${spent}`)
  }
  if (!name.startsWith(node.domain) || node.domain === name)
    throw new MiningError(
      'BAD_INDEX',
      `the index shows the node of ${JSON.stringify(node.domain)}, from which ${name} cannot be mined`,
    )
  return node
}

async function verifiedPart(
  question: NodeQuestion,
  part: Shown & { from: WayPoint | undefined },
): Promise<VerifiedNode> {
  try {
    const node = await verifyNode({ ...question, ...part, maxBytes: MAX_EVIDENCE_BYTES })
    if (part.from === undefined || node.line.length > part.from.line.length) return node
    throw new ProofError('NOT_DESCENDED', 'no mint leads on to it')
  } catch (cause) {
    if (!(cause instanceof ProofError)) throw cause
    const outpoint = formatOutpoint(part.outpoint)
    throw new MiningError('BAD_PROOF', `the index shows the node ${outpoint}: ${cause.message}`, { cause })
  }
}

/**
 * Whether the index still says that a name is mined from this node. A mint just submitted counts before the network is known to
 * have it.
 */
export async function isLive(
  index: Pick<MineIndex, 'liveNode'>,
  { name, node }: { name: string; node: Pick<VerifiedNode, 'outpoint'> },
): Promise<boolean> {
  for (const unseen of [false, true]) {
    const live = await index.liveNode(name, { unseen })
    if (live !== undefined && formatOutpoint(live.outpoint) === formatOutpoint(node.outpoint)) return true
  }
  return false
}

/** How often an index is asked for the mint that spent a node: one of several servers behind a URL may lag. */
const ATTEMPTS = 3
const PAUSE = 1_000

/**
 * Where to continue when an index says that a node was spent: a verified node that descends from it, or undefined if the index
 * says that the whole name is taken.
 *
 * @param moved.cause Why the node is said to be spent.
 * @param moved.mayBeLive Whether the index may say again that it is live.
 * @param moved.pause Milliseconds between attempts, if less than the default.
 * @throws MiningError `NOT_SHOWN` if the index shows no mint that spends the node.
 */
export async function successorNode(
  question: NodeQuestion,
  moved: { name: string; node: VerifiedNode; cause: unknown; mayBeLive?: boolean; pause?: number },
): Promise<VerifiedNode | undefined> {
  const { name, node, cause, mayBeLive = false, pause = PAUSE } = moved
  const { outpoint } = node
  for (let attempt = 1; ; attempt++) {
    try {
      return await verifiedLiveNode(question, { after: node.outpoint, from: node })
    } catch (error) {
      if (!(error instanceof MiningError) || error.code !== 'BAD_PROOF') throw error
      if (mayBeLive && (await isLive(question.index, { name, node }))) return node
      if (attempt === ATTEMPTS)
        throw new MiningError(
          'NOT_SHOWN',
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
  /** Whether this mint and all mints before it are in blocks that the chain tracker knows. */
  proven: boolean
}

/**
 * The mint of a name, if it gives the name to the requested owner. Anyone who sees a mint can put its solution into another
 * transaction; in a tree of covenant version 2, that one gives the name to the same owner.
 *
 * @param asked.nameScript Output 2 of a mint of the name for the owner: the lock, and what the covenant writes after it.
 * @param asked.node A verified node on the way to it, if there is one.
 * @returns Undefined if the index shows no such mint, or an invalid one.
 * @throws HeadersError if the chain tracker does not answer; the reason of the signal.
 */
export async function ownersMint(
  asked: Omit<MintQuestion, 'from'> & { nameScript: Uint8Array; node?: WayPoint },
): Promise<OwnersMint | undefined> {
  const { nameScript, node, signal } = asked
  try {
    const mint = await verifiedMint({ ...asked, from: node })
    if (mint === undefined || !equalBytes(mint.lockingScript, nameScript)) return undefined
    return { txid: mint.origin.txid, proven: mint.proven }
  } catch (error) {
    signal?.throwIfAborted()
    if (error instanceof ProofError || error instanceof MiningError) return undefined
    throw error
  }
}

/** A name, and the index to ask about its mint. */
export interface MintQuestion extends Trust {
  name: string
  deployment: Deployment
  index: Pick<MineIndex, 'showName'>
  /** A verified node on the way to the mint. */
  from?: WayPoint | undefined
}

/**
 * The mint of a name, read and verified part by part: strangers can make the way to it longer than one answer may be.
 *
 * @returns The mint with the script of the name's origin; undefined if the index shows none.
 * @throws ProofError; MiningError; HeadersError if the chain tracker does not answer; the reason of the signal.
 */
export async function verifiedMint(
  question: MintQuestion,
): Promise<(VerifiedName & { lockingScript: Uint8Array }) | undefined> {
  const { name, index } = question
  for (let { from } = question; ; ) {
    const shown = await index.showName(name, from && [from.outpoint])
    if (shown === undefined) return undefined
    const { beef, outpoint: origin } = shown
    const part = await verifyNameMint({
      ...question,
      ...{ beef, origin, towards: name, from, maxBytes: MAX_EVIDENCE_BYTES },
    })
    if (part.name === name) return part
    if (part.line.length <= (from?.line.length ?? 0)) return undefined
    from = part.next
  }
}
