import type { Transaction } from '@bsv/sdk'
import { ascii } from '../../backend/src/protocol/bytes.js'
import { isName } from '../../backend/src/protocol/mine-node.js'
import {
  type Deployment,
  type DeploymentTerms,
  longestName,
  requireMinable,
} from '../../backend/src/protocol/mint.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import type { LiveNode, MineIndex } from './mine-index.js'
import { MiningError, NodeMovedError } from './mining-error.js'
import type { MintPlan } from './mint-plan.js'
import type { SignedMint } from './mint-transaction.js'
import type { SearchProgress } from './search/search-nonce.js'
import { searchWhileLive } from './search-while-live.js'

/** What happens while a name is mined. `name` is the prefix that is being mined. */
export type MiningEvent =
  | { kind: 'started'; name: string; node: LiveNode }
  | { kind: 'searching'; name: string; progress: SearchProgress }
  /** Somebody else has spent the node: it goes on from the new one. */
  | { kind: 'moved'; name: string }
  | { kind: 'minted'; name: string; txid: string; hashes: number }

/** A solution, and the transaction that holds the node it is for, with its proof or ancestors. */
export interface MintDraft {
  plan: MintPlan
  source: Transaction
}

/** A mint that is signed, and the form in which an overlay takes it. */
export interface PaidMint extends SignedMint {
  beef: Uint8Array
}

/** Who pays for mints, and whose the names are. */
export interface MintPayer {
  /** Pays for a mint and signs it; what it throws ends the mining, unless the node has moved meanwhile. */
  pay(draft: MintDraft): Promise<PaidMint>
  /** The lock of each name on the way, and of the name itself. */
  ownerLock(name: string): Promise<Uint8Array>
}

export interface SolveOptions extends Pick<MintPayer, 'ownerLock'> {
  name: string
  deployment: Deployment
  index: Pick<MineIndex, 'liveNode' | 'nodeTransaction'>
  /** As {@link searchNonce} takes it. */
  workers?: number
  workerUrl?: string | URL
  /** How often to look whether the node has moved while the search goes on, in milliseconds. */
  watchEvery?: number
  signal?: AbortSignal
  onEvent?(event: MiningEvent): void
}

export interface MineNameOptions extends SolveOptions, MintPayer {
  index: MineIndex
}

/** A solution that nobody has used yet. `name` is the prefix that it mints. */
export interface Solved extends MintDraft {
  name: string
  node: LiveNode
  hashes: number
}

/**
 * Mines what is missing of a name, a character at a time, each from the node that is live then. When somebody else moves
 * the node, the search starts anew from where it went: a solution is for one seed only. A search that was stopped is
 * begun again by mining the same name again; what was minted until then stays.
 *
 * @returns The mints that were made, in order; the last is that of the name.
 * @throws MiningError `BAD_NAME`; `TAKEN`, where somebody else has the name, before or meanwhile; what index and payer
 * throw; the reason of the signal.
 */
export async function mineName(options: MineNameOptions): Promise<PaidMint[]> {
  const minted: PaidMint[] = []
  while (minted.at(-1)?.mint.name !== options.name) {
    const solved = await solveNext(options)
    const mint = await unlessMoved(options, solved, () => payFor(options, solved))
    if (mint !== undefined) minted.push(mint)
  }
  return minted
}

/**
 * Searches the solution for the first character that is missing of a name, from the node that is live then, and anew
 * from where that went when somebody else moves it. The node was still live when the solution was found.
 *
 * @throws MiningError `BAD_NAME`; `TAKEN`; what the index throws; the reason of the signal.
 */
export async function solveNext(options: SolveOptions): Promise<Solved> {
  const { name, index, deployment } = options
  requireMinableName(name, deployment)
  for (;;) {
    options.signal?.throwIfAborted()
    const node = await index.liveNode(name)
    if (node === undefined) throw new MiningError('TAKEN', `${name} is taken`)
    if (!name.startsWith(node.domain) || node.domain === name)
      throw new MiningError(
        'BAD_INDEX',
        `the index names ${JSON.stringify(node.domain)} as a prefix of ${name}`,
      )
    const next = name.slice(0, node.domain.length + 1)
    const solved = await unlessMoved(options, { name: next }, () => solveFrom(options, { name: next, node }))
    if (solved !== undefined) return solved
  }
}

/**
 * Checks before anything is searched or paid for that the tree's covenant can carry a name to its last character.
 *
 * @throws MiningError `BAD_NAME`, with how long a name of this tree may be.
 */
export function requireMinableName(name: string, deployment: DeploymentTerms): void {
  const longest = longestName(deployment)
  if (isName(name) && name.length <= longest) return
  const has = name.length > longest ? `, and this one has ${name.length}` : ''
  throw new MiningError('BAD_NAME', `a name is 1 to ${longest} characters of a-z 0-9 -${has}`)
}

/** Undefined where the node has moved, which is told. */
async function unlessMoved<Value>(
  { onEvent }: SolveOptions,
  { name }: { name: string },
  trial: () => Promise<Value>,
): Promise<Value | undefined> {
  try {
    return await trial()
  } catch (error) {
    if (!(error instanceof NodeMovedError)) throw error
    onEvent?.({ kind: 'moved', name })
    return undefined
  }
}

/** @throws NodeMovedError where the node is not live any more. */
async function solveFrom(
  options: SolveOptions,
  { name, node }: { name: string; node: LiveNode },
): Promise<Solved> {
  const { deployment, index, onEvent } = options
  onEvent?.({ kind: 'started', name, node })
  const source = await index.nodeTransaction(node)
  const output = source.outputs[node.outpoint.vout]
  if (output === undefined)
    throw new MiningError('BAD_INDEX', `${formatOutpoint(node.outpoint)} is not there`)
  const placed = {
    outpoint: node.outpoint,
    satoshis: output.satoshis ?? 0,
    lockingScript: Uint8Array.from(output.lockingScript.toUint8Array()),
  }
  const character = name.slice(-1)
  const { parent } = requireMinable({ node: placed, character: ascii(character), deployment })
  const { nonce, hashes } = await searchWhileLive({
    ...options,
    search: { seed: parent.seed, character, difficulty: deployment.difficulty },
    isLive: () => isLive(index, { name, node }),
    onProgress: (progress) => onEvent?.({ kind: 'searching', name, progress }),
  })
  const plan = { node: placed, deployment, character, nonce, ownerLock: await options.ownerLock(name) }
  // Whoever came first while the solution was found has made it worthless: it is not paid for.
  if (!(await isLive(index, { name, node }))) throw new NodeMovedError(`${name} was mined from another node`)
  return { name, node, plan, source, hashes }
}

/** @throws NodeMovedError where the node is not live any more. */
async function payFor({ index, pay, onEvent }: MineNameOptions, solved: Solved): Promise<PaidMint> {
  const { name, plan, source, hashes } = solved
  const paid = await pay({ plan, source }).catch(async (error: unknown) => {
    // A wallet that sends a transaction hears of a rival before the index does.
    throw (await isLive(index, solved)) ? error : new NodeMovedError(String(error), { cause: error })
  })
  const txid = paid.transaction.id('hex')
  await index.submit({ beef: paid.beef, txid, name })
  onEvent?.({ kind: 'minted', name, txid, hashes })
  return paid
}

async function isLive(
  index: Pick<MineIndex, 'liveNode'>,
  { name, node }: { name: string; node: LiveNode },
): Promise<boolean> {
  const live = await index.liveNode(name)
  return live !== undefined && formatOutpoint(live.outpoint) === formatOutpoint(node.outpoint)
}
