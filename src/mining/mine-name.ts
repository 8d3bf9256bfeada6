import type { Transaction } from '@bsv/sdk'
import { ascii, equalBytes } from '../../backend/src/protocol/bytes.js'
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
import { formatOutpoint, type Outpoint } from '../../backend/src/protocol/outpoint.js'
import { unlessAborted } from '../client/bounded-fetch.js'
import { ProofError } from '../client/errors.js'
import { type VerifiedNode, verifyNameMint, verifyNode } from '../client/verify-name.js'
import type { Trust } from '../client/verify-transactions.js'
import { budgetFor, type MiningBudget, Spending } from './budget.js'
import type { MineIndex } from './mine-index.js'
import { MiningError, NodeMovedError } from './mining-error.js'
import type { MintPlan, SignedMint } from './mint-transaction.js'
import type { SearchProgress } from './search/search-nonce.js'
import { searchWhileLive } from './search-while-live.js'

/** What happens while a name is mined. `name` is the prefix that is being mined. */
export type MiningEvent =
  | { kind: 'started'; name: string; node: VerifiedNode }
  | { kind: 'searching'; name: string; progress: SearchProgress }
  /** Somebody else has minted `by` from the node, which was verified: mining continues from there. */
  | { kind: 'moved'; name: string; by: string }
  /**
   * @property byOther Another transaction than the one made here gives the name to the very owner that was asked for:
   * somebody who saw the mint may have put it into a transaction of their own. `fee` is 0, and a payer knows nothing of
   * the outputs.
   */
  | { kind: 'minted'; name: string; txid: string; hashes: number; fee: number; byOther: boolean }

/** A solution, and the transaction that holds the node it is for, with its proof or ancestors. */
export interface MintDraft {
  plan: MintPlan
  source: Transaction
  /** The fee that the mint may have, in satoshis. */
  maxFee: number
}

/** A mint that is signed, and the form in which an overlay takes it. */
export interface PaidMint extends SignedMint {
  beef: Uint8Array
  /** In satoshis. */
  fee: number
}

/** Who pays for mints, and whose the names are. */
export interface MintPayer {
  /** Pays for a mint and signs it; what it throws ends the mining, unless the node has moved meanwhile. */
  pay(draft: MintDraft): Promise<PaidMint>
  /**
   * The lock of each name on the way, and of the name itself. Asked before each search, whose solution may be of use to
   * this owner alone; what it throws ends the mining.
   */
  ownerLock(name: string): Promise<Uint8Array>
  /**
   * Hears that the index refuses a paid mint and has shown another one, verified, in its place.
   *
   * @param rival Whether all of what was shown is in blocks.
   * @throws MiningError `UNDECIDED` where the mint may count all the same: then nothing more is mined.
   */
  lost?(mint: PaidMint, rival: { proven: boolean }): Promise<void>
}

/** What to mine, where, and what vouches for it (see {@link Trust}). */
export interface SolveOptions extends Pick<MintPayer, 'ownerLock'>, Trust {
  name: string
  deployment: Deployment
  index: Pick<MineIndex, 'liveNode' | 'showNode'>
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
  /** What it may cost; the defaults are those of {@link budgetFor}. */
  budget?: Partial<MiningBudget>
  /** Is asked once, before anything is searched or paid for; what it throws ends the mining. */
  approve?(plan: { node: VerifiedNode; missing: string; budget: MiningBudget }): Promise<void>
}

/** A solution that nobody has used yet. `name` is the prefix that it mints. */
export interface Solved extends Omit<MintDraft, 'maxFee'> {
  name: string
  node: VerifiedNode
  hashes: number
}

/**
 * Mines what is missing of a name, a character at a time. The first node is the one that the index shows, verified from
 * the genesis on; each later one is the child that the last mint made. When somebody else spends the node, the index has
 * to show that mint, and mining continues from there. A mint that somebody put into another transaction still gives the
 * name to the same owner, so it counts. A search that was stopped is resumed by mining the same name again; what was minted
 * until then stays.
 *
 * @returns The mints that were paid for and count as they are, in order. Names that count by another transaction are in
 * `minted` events only.
 * @throws MiningError `BAD_NAME`; `TAKEN`, where somebody else has the name, before or meanwhile; `BAD_PROOF`, `NO_RIVAL`
 * and `BAD_INDEX`, where the index shows nothing that holds; `OVER_BUDGET`; what index and payer throw; HeadersError; the
 * reason of the signal.
 */
export async function mineName(options: MineNameOptions): Promise<PaidMint[]> {
  const minted: PaidMint[] = []
  await withinTime(options, async (limited) => await mineWithin(limited, minted))
  return minted
}

async function mineWithin(
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
      // A wallet that sends a transaction hears of a rival before the index does.
      if (await isLive(index, solved)) throw error
      const { ours, next } = await replaced(options, solved, error)
      if (ours !== undefined) tellMintedByOther(options, { ...solved, ours })
      if (next === undefined) return
      node = next
      continue
    }
    const { fee } = paid
    spending.settle({ allowed, fee })
    const txid = paid.transaction.id('hex')
    try {
      await unlessAborted(index.submit({ beef: paid.beef, txid, name: solved.name }), signal)
    } catch (error) {
      if (!(error instanceof NodeMovedError)) throw error
      const { ours, next, proven } = await replaced(options, solved, error)
      if (ours?.txid !== txid) {
        if (ours !== undefined) tellMintedByOther(options, { ...solved, ours })
        // Whichever of the two a block gets, the last name is its owner's; but a node to mine from is left by one of them.
        await options.lost?.(paid, { proven }).catch((error: unknown) => {
          if (next !== undefined || !(error instanceof MiningError) || error.code !== 'UNDECIDED') throw error
        })
        if (next === undefined) return
        node = next
        continue
      }
      // What it shows is the very mint that it refused.
    }
    minted.push(paid)
    onEvent?.({ kind: 'minted', name: solved.name, txid, hashes: solved.hashes, fee, byOther: false })
    node = childOf(paid, solved.node)
  }
}

/**
 * Searches the solution for the first character that is missing of a name, from the verified node that the index shows,
 * and from where that went when somebody else spends it. The node was still live when the solution was found.
 *
 * @throws MiningError `BAD_NAME`; `TAKEN`; `BAD_PROOF`; what the index throws; HeadersError; the reason of the signal.
 */
export async function solveNext(options: SolveOptions): Promise<Solved> {
  return await solve(options, await firstNode(options))
}

async function solve(options: SolveOptions, from: VerifiedNode): Promise<Solved> {
  for (let node = from; ; ) {
    options.signal?.throwIfAborted()
    const name = options.name.slice(0, node.domain.length + 1)
    try {
      return await solveFrom(options, { name, node })
    } catch (error) {
      if (!(error instanceof NodeMovedError)) throw error
      // Nothing was paid for yet: an index that lags behind may find out that the node is live.
      const next = await movedNode(options, { name, node, cause: error, mayBeLive: true })
      if (next === undefined) throw taken(options.name)
      if (next !== node) tellMoved(options, { name, next })
      node = next
    }
  }
}

/**
 * What took the place of a mint of ours: the verified mint of the same name for the same owner, if it is that, and the node
 * to mine from next, which is undefined where the whole name is mined and ours.
 *
 * @throws MiningError `TAKEN`; as {@link movedNode}.
 */
async function replaced(
  options: MineNameOptions,
  solved: Solved,
  cause: unknown,
): Promise<{ ours?: OwnersMint; next?: VerifiedNode; proven: boolean }> {
  const { name, plan } = solved
  const next = await movedNode(options, { ...solved, cause })
  const rival = next?.line.find((mint) => mint.name === name)
  if (next !== undefined && rival === undefined) {
    tellMoved(options, { name, next })
    return { next, proven: next.proven }
  }
  const { ownerLock, deployment } = plan
  const nameScript = encodeNameOutput({ ownerLock, name, deployment })
  const found = await ownersMint({ ...options, name, nameScript })
  // What is mined from has to come of the very mint that is shown for the name.
  const ours = next === undefined || found?.txid === rival?.txid ? found : undefined
  if (next === undefined) {
    if (ours === undefined) throw taken(options.name)
    return { ours, proven: ours.proven }
  }
  if (ours === undefined) tellMoved(options, { name, next })
  return { next, proven: next.proven, ...(ours && { ours }) }
}

/** A mint that gives a name to the owner who is asked about. */
export interface OwnersMint {
  txid: string
  /** Whether it and all mints before it are in blocks that the chain tracker knows. */
  proven: boolean
}

/**
 * The mint of a name, if it gives the name to this very owner. Whoever sees a mint can put its solution into a transaction
 * of their own: that has another txid, but in a tree of covenant version 2 it has to give the name to the same owner.
 *
 * @param asked.nameScript Output 2 of a mint of the name for the owner: the lock, and what the covenant writes behind it.
 * @returns Undefined where the index shows no such mint, or none that holds.
 * @throws HeadersError where the chain tracker does not answer; the reason of the signal.
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
    if (!equalBytes(lockingScript, nameScript)) return undefined
    return { txid: origin.txid, proven }
  } catch (error) {
    signal?.throwIfAborted()
    if (error instanceof ProofError || error instanceof MiningError) return undefined
    throw error
  }
}

function tellMoved({ onEvent }: SolveOptions, { name, next }: { name: string; next: VerifiedNode }): void {
  onEvent?.({ kind: 'moved', name, by: next.outpoint.txid })
}

function tellMintedByOther(
  { onEvent }: SolveOptions,
  { name, hashes, ours }: Solved & { ours: OwnersMint },
): void {
  onEvent?.({ kind: 'minted', name, txid: ours.txid, hashes, fee: 0, byOther: true })
}

/** @throws MiningError `BAD_NAME`, `TAKEN`, `BAD_INDEX`, `BAD_PROOF`; HeadersError. */
async function firstNode(options: SolveOptions): Promise<VerifiedNode> {
  requireMinableName(options.name, options.deployment)
  const node = await verifiedLiveNode(options)
  if (node === undefined) throw taken(options.name)
  return node
}

/**
 * The node that an index shows for a name, verified; undefined where it says that the name is taken.
 *
 * @param after A node that it has to descend from.
 * @throws MiningError `BAD_PROOF`, `BAD_INDEX`; HeadersError.
 */
export async function verifiedLiveNode(
  options: Pick<SolveOptions, 'name' | 'index' | 'deployment'> & Trust,
  after?: Outpoint,
): Promise<VerifiedNode | undefined> {
  const { name, index } = options
  // Its word tells a name that is taken from a tree that is not there; the evidence alone does not.
  if ((await index.liveNode(name)) === undefined) return undefined
  const shown = await index.showNode(name)
  if (shown === undefined) return undefined
  let node: VerifiedNode
  try {
    node = await verifyNode({ ...options, ...shown, ...(after && { after }) })
  } catch (cause) {
    if (!(cause instanceof ProofError)) throw cause
    const outpoint = formatOutpoint(shown.outpoint)
    throw new MiningError('BAD_PROOF', `the index shows the node ${outpoint}: ${cause.message}`, { cause })
  }
  if (!name.startsWith(node.domain) || node.domain === name)
    throw new MiningError(
      'BAD_INDEX',
      `the index shows the node of ${JSON.stringify(node.domain)} to mine ${name} from`,
    )
  return node
}

/** How often an index is asked for the mint that has spent a node: of several behind one URL, one may lag behind. */
const ASKS = 3
const PAUSE = 1_000

/**
 * Where mining continues when an index says that a node was spent: a node that descends from it, verified; undefined where
 * the index says that the whole name is taken.
 *
 * @param moved.cause Why the node is said to have moved.
 * @param moved.mayBeLive Whether the index may take that back.
 * @throws MiningError `NO_RIVAL` where the index shows no mint that spends the node.
 */
async function movedNode(
  options: SolveOptions,
  moved: { name: string; node: VerifiedNode; cause: unknown; mayBeLive?: boolean },
): Promise<VerifiedNode | undefined> {
  const { name, node, cause, mayBeLive = false } = moved
  const { outpoint } = node
  const pause = Math.min(PAUSE, options.watchEvery ?? PAUSE)
  for (let asks = 1; ; asks++) {
    try {
      return await verifiedLiveNode(options, outpoint)
    } catch (error) {
      if (!(error instanceof MiningError) || error.code !== 'BAD_PROOF') throw error
      if (mayBeLive && (await isLive(options.index, { name, node }))) return node
      if (asks === ASKS) throw noRival(outpoint, { cause, error })
    }
    await new Promise((resume) => setTimeout(resume, pause))
    options.signal?.throwIfAborted()
  }
}

function noRival(outpoint: Outpoint, why: { cause: unknown; error: MiningError }): MiningError {
  const said = why.cause instanceof Error ? why.cause.message : String(why.cause)
  return new MiningError(
    'NO_RIVAL',
    `the index says that ${formatOutpoint(outpoint)} is spent (${said}), and shows no mint that spends it: ${why.error.message}`,
    { cause: why.error },
  )
}

function taken(name: string): MiningError {
  return new MiningError('TAKEN', `${name} is taken`)
}

/** The node of the name that a mint has made. */
function childOf({ mint, transaction }: PaidMint, parent: VerifiedNode): VerifiedNode {
  const txid = transaction.id('hex')
  const lockingScript = encodeMineNode(mint.child)
  const line = [...parent.line, { txid, name: mint.name }]
  const outpoint = { txid, vout: 1 }
  return {
    domain: mint.name,
    outpoint,
    satoshis: MINT_SATOSHIS,
    lockingScript,
    line,
    proven: false,
    transaction,
  }
}

/** Runs work with a signal that ends it when the time of the budget is over. */
async function withinTime(
  options: MineNameOptions,
  work: (limited: MineNameOptions & { signal: AbortSignal }) => Promise<void>,
): Promise<void> {
  const { maxTime } = budgetFor(options.name.length, options.budget)
  const over = new AbortController()
  const reason = new MiningError('OVER_BUDGET', `it takes longer than ${maxTime / 1000} seconds (maxTime)`)
  const timer = setTimeout(() => over.abort(reason), maxTime)
  const signals = options.signal === undefined ? [over.signal] : [options.signal, over.signal]
  try {
    await work({ ...options, signal: AbortSignal.any(signals) })
  } finally {
    clearTimeout(timer)
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

/** @throws NodeMovedError where the node is not live any more. */
async function solveFrom(
  options: SolveOptions,
  { name, node }: { name: string; node: VerifiedNode },
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
  const asked = options.ownerLock(name)
  const ownerLock = await (signal === undefined ? asked : unlessAborted(asked, signal))
  onEvent?.({ kind: 'started', name, node })
  const noncePrefix = ownerCommitment({ domain: parent.domain, ownerLock, deployment })
  const { nonce, hashes } = await searchWhileLive({
    ...options,
    search: { seed: parent.seed, character, difficulty: deployment.difficulty, noncePrefix },
    isLive: () => isLive(index, { name, node }),
    onProgress: (progress) => onEvent?.({ kind: 'searching', name, progress }),
  })
  const plan = { node: placed, deployment, character, nonce, ownerLock }
  // A rival who came first while the solution was found has made it worthless: it is not paid for.
  if (!(await isLive(index, { name, node }))) throw new NodeMovedError(`${name} was mined from another node`)
  return { name, node, plan, source, hashes }
}

async function isLive(
  index: Pick<MineIndex, 'liveNode'>,
  { name, node }: { name: string; node: VerifiedNode },
): Promise<boolean> {
  const live = await index.liveNode(name)
  return live !== undefined && formatOutpoint(live.outpoint) === formatOutpoint(node.outpoint)
}
