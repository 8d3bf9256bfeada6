import { ascii } from '../../backend/src/protocol/bytes.js'
import { encodeMineNode, isName } from '../../backend/src/protocol/mine-node.js'
import {
  type Deployment,
  type DeploymentTerms,
  encodeNameOutput,
  longestName,
  MINT_SATOSHIS,
  ownerCommitment,
  requireMinable,
  rulesOf,
} from '../../backend/src/protocol/mint.js'
import { requireArgument, requireTree } from '../client/arguments.js'
import { unlessAborted, withTimeLimit } from '../client/bounded-fetch.js'
import type { VerifiedNode } from '../client/verify-name.js'
import type { Trust } from '../client/verify-transactions.js'
import { budgetFor, type MiningBudget, Spending } from './budget.js'
import { isLive, type OwnersMint, ownersMint, successorNode, verifiedLiveNode } from './live-node.js'
import type { MineIndex } from './mine-index.js'
import { MiningError, NodeMovedError } from './mining-error.js'
import type { MintDraft, MintPayer, PaidMint } from './mint-transaction.js'
import { type SearchOptions, type SearchProgress, searchNonce } from './search/search-nonce.js'

/** Progress of mining. `name` is the prefix that is being mined. */
export type MiningEvent =
  | { kind: 'started'; name: string; node: VerifiedNode }
  | { kind: 'searching'; name: string; progress: SearchProgress }
  /** The node was spent by somebody else's mint, `by`, which was verified: mining continues from there. */
  | { kind: 'moved'; name: string; by: string }
  /**
   * @property byOther The owner has the name by another transaction: somebody who saw the mint put its solution into one of their
   * own. `fee` is 0, and the payer does not know the outputs.
   */
  | { kind: 'minted'; name: string; txid: string; hashes: number; fee: number; byOther: boolean }

export interface SolveOptions extends Pick<MintPayer, 'ownerLock'>, Trust {
  name: string
  deployment: Deployment
  index: Pick<MineIndex, 'liveNode' | 'showNode'>
  /** As in {@link searchNonce}. */
  workers?: number
  workerUrl?: string | URL
  /** How often a search checks that the node is still live, in milliseconds. */
  watchEvery?: number
  signal?: AbortSignal
  onEvent?(event: MiningEvent): void
}

export interface MineNameOptions extends SolveOptions, MintPayer {
  index: MineIndex
  /** Limits on the cost; the defaults are those of {@link budgetFor}. */
  budget?: Partial<MiningBudget>
  /** Called once, before any search or payment; throwing ends the mining. */
  approve?(plan: { node: VerifiedNode; missing: string; budget: MiningBudget }): Promise<void>
}

/** An unused solution. `name` is the prefix that it mints. */
export interface Solved extends Omit<MintDraft, 'maxFee'> {
  name: string
  node: VerifiedNode
  hashes: number
}

/**
 * Mines the missing characters of a name, one at a time. The first node is the one that the index shows, verified from the
 * genesis on; each later one is the child that the last mint created. If somebody else spends the node, the index has to show
 * that mint, and mining continues from there. If somebody else's transaction uses a solution of ours, the name still goes to the
 * same owner, so that mint counts. To resume a stopped search, mine the same name again; existing mints remain.
 *
 * @returns The paid mints that count, in order. Names that count by another transaction occur in `minted` events only.
 * @throws MiningError `BAD_NAME`; `TAKEN` if somebody else has the name, before or meanwhile; `BAD_PROOF`, `NOT_SHOWN` and
 * `BAD_INDEX` if the index shows nothing valid; `OVER_BUDGET`; errors of the index and the payer; HeadersError; the reason of the
 * signal. TypeError for an argument of a wrong type.
 */
export async function mineName(options: MineNameOptions): Promise<PaidMint[]> {
  requireSolvable(options)
  requireArgument(typeof options.pay === 'function', 'pay', 'a function that pays for a mint')
  const minted: PaidMint[] = []
  const { maxTime } = budgetFor(options.name.length, options.budget)
  const late = (): Error =>
    new MiningError('OVER_BUDGET', `mining took longer than ${maxTime / 1000} seconds (maxTime)`)
  await withTimeLimit({ milliseconds: maxTime, late, signal: options.signal }, async (signal) => {
    await mineCharacters({ ...options, signal }, minted)
  })
  return minted
}

async function mineCharacters(
  options: MineNameOptions & { signal: AbortSignal },
  minted: PaidMint[],
): Promise<void> {
  const { name, index, onEvent, signal } = options
  let node = await firstNode(options)
  const missing = name.slice(node.domain.length)
  const budget = budgetFor(missing.length, options.budget)
  await options.approve?.({ node, missing, budget })
  const spending = new Spending(budget)
  while (node.domain !== name) {
    const solved = await solve(options, node)
    const allowed = spending.allowMint()
    let paid: PaidMint
    try {
      const draft = { plan: solved.plan, source: solved.source, maxFee: allowed }
      paid = await unlessAborted(options.pay(draft), signal)
    } catch (error) {
      signal.throwIfAborted()
      // A wallet that sends a transaction may learn of a conflicting one before the index does.
      if (await isLive(index, solved)) throw error
      const { ours, next } = await replacementOf(options, solved, error)
      if (ours !== undefined) reportMintedByOther(options, { ...solved, ours })
      if (next === undefined) return
      node = next
      continue
    }
    const { fee } = paid
    spending.recordFee({ allowed, fee })
    const txid = paid.transaction.id('hex')
    try {
      await unlessAborted(index.submit({ beef: paid.beef, txid, name: solved.name }), signal)
    } catch (error) {
      if (!(error instanceof NodeMovedError)) throw error
      const { ours, next, proven } = await replacementOf(options, solved, error)
      if (ours?.txid !== txid) {
        if (ours !== undefined) reportMintedByOther(options, { ...solved, ours })
        // Either way the owner gets the last name, but which of the two is confirmed decides the next node.
        await options.lost?.(paid, { proven }).catch((error: unknown) => {
          if (next !== undefined || !(error instanceof MiningError) || error.code !== 'UNDECIDED') throw error
        })
        if (next === undefined) return
        node = next
        continue
      }
      // The index shows the same mint that it refused.
    }
    minted.push(paid)
    onEvent?.({ kind: 'minted', name: solved.name, txid, hashes: solved.hashes, fee, byOther: false })
    node = childOf(paid, solved.node)
  }
}

/**
 * Searches the solution for the first missing character of a name, from the verified node that the index shows, or from its
 * successor if somebody else spends it. The node was still live when the solution was found.
 *
 * @throws MiningError `BAD_NAME`; `TAKEN`; `BAD_PROOF`; errors of the index; HeadersError; the reason of the signal. TypeError
 * for an argument of a wrong type.
 */
export async function solveNext(options: SolveOptions): Promise<Solved> {
  requireSolvable(options)
  return await solve(options, await firstNode(options))
}

async function solve(options: SolveOptions, from: VerifiedNode): Promise<Solved> {
  let started: VerifiedNode | undefined
  for (let node = from; ; ) {
    options.signal?.throwIfAborted()
    const name = options.name.slice(0, node.domain.length + 1)
    const onStart = (): void => {
      // An index may say several times that the node is spent, and then that it is live.
      if (started !== node) options.onEvent?.({ kind: 'started', name, node })
      started = node
    }
    try {
      return await solveFrom(options, { name, node, onStart })
    } catch (cause) {
      if (!(cause instanceof NodeMovedError)) throw cause
      // Nothing is paid yet, so an index that lags may say again that the node is live.
      const moved = { name, node, cause, mayBeLive: true, pause: options.watchEvery }
      const next = await successorNode(options, moved)
      if (next === undefined) throw taken(options.name)
      if (next !== node) reportMoved(options, { name, next })
      node = next
    }
  }
}

/** @throws NodeMovedError if the node is not live any more. */
async function solveFrom(
  options: SolveOptions,
  { name, node, onStart }: { name: string; node: VerifiedNode; onStart(): void },
): Promise<Solved> {
  const { index, signal, onEvent } = options
  const { outpoint, satoshis, lockingScript, transaction: source } = node
  const placed = { outpoint, satoshis, lockingScript }
  const character = name.slice(-1)
  const { parent } = requireMinable({
    node: placed,
    character: ascii(character),
    deployment: options.deployment,
  })
  const deployment = rulesOf(parent, options.deployment)
  const ownerLock = await unlessAborted(options.ownerLock(name), signal)
  onStart()
  const noncePrefix = ownerCommitment({ domain: parent.domain, ownerLock, deployment })
  const { nonce, hashes } = await searchWhileLive({
    ...options,
    search: { seed: parent.seed, character, difficulty: deployment.difficulty, noncePrefix },
    isLive: () => isLive(index, { name, node }),
    onProgress: (progress) => onEvent?.({ kind: 'searching', name, progress }),
  })
  const plan = { node: placed, deployment, character, nonce, ownerLock }
  // If another mint was first, the solution is worthless: do not pay for it.
  if (!(await isLive(index, { name, node }))) throw new NodeMovedError(`${name} was mined from another node`)
  return { name, node, plan, source, hashes }
}

/** How often to check that the node is still live, in milliseconds. */
const WATCH_EVERY = 5_000

/**
 * Searches for a nonce, and stops when the node is no longer live.
 *
 * @throws NodeMovedError if the node is no longer live; the reason of the signal.
 */
export async function searchWhileLive(
  options: Pick<SolveOptions, 'workers' | 'workerUrl' | 'watchEvery' | 'signal'> & {
    search: Pick<SearchOptions, 'seed' | 'character' | 'difficulty' | 'noncePrefix'>
    isLive(): Promise<boolean>
    onProgress?(progress: SearchProgress): void
  },
): Promise<{ nonce: Uint8Array; hashes: number }> {
  const { search, workers, workerUrl, watchEvery = WATCH_EVERY, signal, onProgress } = options
  const moved = new AbortController()
  let isChecking = false
  const watch = setInterval(async () => {
    if (isChecking) return
    isChecking = true
    try {
      if (!(await options.isLive())) {
        clearInterval(watch)
        moved.abort(new NodeMovedError('another mint has spent the node'))
      }
    } catch {
      // A failure does not matter here: the index is asked again before the solution is used.
    } finally {
      isChecking = false
    }
  }, watchEvery)
  try {
    return await searchNonce({
      ...search,
      signal: signal === undefined ? moved.signal : AbortSignal.any([signal, moved.signal]),
      workers,
      workerUrl,
      onProgress,
    })
  } finally {
    clearInterval(watch)
  }
}

/**
 * What replaced a mint of ours: the verified mint of the same name for the same owner, if there is one, and the next node to mine
 * from, which is undefined if the whole name is mined and ours.
 *
 * @throws MiningError `TAKEN`; as {@link successorNode}.
 */
async function replacementOf(
  options: MineNameOptions,
  solved: Solved,
  cause: unknown,
): Promise<{ ours?: OwnersMint; next?: VerifiedNode; proven: boolean }> {
  const { name, node, plan } = solved
  const next = await successorNode(options, { name, node, cause, pause: options.watchEvery })
  const sameName = next?.line.find((mint) => mint.name === name)
  if (next !== undefined && sameName === undefined) {
    reportMoved(options, { name, next })
    return { next, proven: next.proven }
  }
  const { ownerLock, deployment } = plan
  const nameScript = encodeNameOutput({ ownerLock, name, deployment })
  const found = await ownersMint({ ...options, name, nameScript, node })
  // The next node must descend from the mint that the index shows for the name.
  const ours = next === undefined || found?.txid === sameName?.txid ? found : undefined
  if (next === undefined) {
    if (ours === undefined) throw taken(options.name)
    return { ours, proven: ours.proven }
  }
  if (ours === undefined) reportMoved(options, { name, next })
  return { next, proven: next.proven, ...(ours && { ours }) }
}

function reportMoved({ onEvent }: SolveOptions, { name, next }: { name: string; next: VerifiedNode }): void {
  onEvent?.({ kind: 'moved', name, by: next.outpoint.txid })
}

function reportMintedByOther(
  { onEvent }: SolveOptions,
  { name, hashes, ours }: Solved & { ours: OwnersMint },
): void {
  onEvent?.({ kind: 'minted', name, txid: ours.txid, hashes, fee: 0, byOther: true })
}

/** @throws TypeError that names the argument that is missing or of a wrong type. */
function requireSolvable(options: SolveOptions): void {
  const { name, index, ownerLock } = options
  requireArgument(typeof name === 'string', 'name', 'a string')
  requireTree(options)
  requireArgument(typeof index?.liveNode === 'function', 'index', 'new HttpMineIndex({ url })')
  requireArgument(typeof ownerLock === 'function', 'ownerLock', 'a function that gives the lock of a name')
}

/** @throws MiningError `BAD_NAME`, `TAKEN`, `BAD_INDEX`, `BAD_PROOF`; HeadersError. */
async function firstNode(options: SolveOptions): Promise<VerifiedNode> {
  requireMinableName(options.name, options.deployment)
  const node = await verifiedLiveNode(options)
  if (node === undefined) throw taken(options.name)
  return node
}

function taken(name: string): MiningError {
  return new MiningError('TAKEN', `${name} is taken`)
}

/** The child node that a mint has created. */
function childOf({ mint, transaction }: PaidMint, parent: VerifiedNode): VerifiedNode {
  const txid = transaction.id('hex')
  return {
    domain: mint.name,
    outpoint: { txid, vout: 1 },
    satoshis: MINT_SATOSHIS,
    lockingScript: encodeMineNode(mint.child),
    line: [...parent.line, { txid, name: mint.name }],
    proven: false,
    transaction,
    passed: [parent.outpoint],
  }
}

/**
 * Checks, before anything is searched or paid for, that the tree's covenant allows all characters of a name.
 *
 * @throws MiningError `BAD_NAME`, with how long a name of this tree may be.
 */
export function requireMinableName(name: string, deployment: DeploymentTerms): void {
  const longest = longestName(deployment)
  if (isName(name) && name.length <= longest) return
  const has = name.length > longest ? `, and this one has ${name.length}` : ''
  throw new MiningError('BAD_NAME', `a name is 1 to ${longest} characters of a-z 0-9 -${has}`)
}
