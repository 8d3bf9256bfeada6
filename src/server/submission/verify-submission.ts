import type { ChainTracker } from '@bsv/sdk'
import type { BeefContents } from '../../../backend/src/graph/read-beef.js'
import { readPath } from '../../../backend/src/graph/read-proof.js'
import type { Proof } from '../../../backend/src/graph/records.js'
import { admittedTransactions, knownTransactions } from '../../../backend/src/graph/transaction-records.js'
import type { Deployment } from '../../../backend/src/protocol/mint.js'
import { likelyWork, type ScriptSpender } from '../../../backend/src/protocol/run-scripts.js'
import {
  countParts,
  isCoinbase,
  outputOf,
  type SpentOutput,
  type TransactionView,
} from '../../../backend/src/protocol/transaction.js'
import { notStrictError, spendsNodeNonStrictly } from './node-spends.js'
import { runScriptsHere, type ScriptRunner } from './script-runner.js'

/** A chain tracker that can refuse beforehand to be asked about so many blocks. */
export interface SubmissionTracker extends ChainTracker {
  /** @throws SubmissionTooLargeError where those are too many. */
  requireFew?(blocks: number): void
}

/** How many confirmations a coinbase has when the next block may spend it (consensus, `COINBASE_MATURITY`). */
const COINBASE_MATURITY = 100
/** How long the scripts of a submission may take where nobody says, in milliseconds. */
const TIMEOUT = 60_000

/**
 * Verifies the subject of a BEEF: its merkle path, or the scripts of it and of its unproven ancestors and the merkle paths
 * of what these rest on. What `Transaction.verify` of the SDK does, but without its recursion, which a long chain makes
 * overflow and a dense one makes endless, each transaction once, and with an end to what scripts may cost. Cheapest first:
 * what the bytes alone tell, then what the chain tracker says, then the scripts.
 *
 * A coinbase can be spent by an unproven transaction when the next block may do so. That it is in a block itself is for
 * its path alone to show; the SDK refuses old ones instead.
 *
 * @param options.tracker Without one, merkle paths are believed; but as they are anybody's word, nothing counts as proven
 * where that makes a difference between mints.
 * @param options.deployment The tree whose nodes only strict mints spend without a proof; none unless set.
 * @param options.isProven Whether the store has a proof of a transaction that brings none; asked for what spends a node and is
 * not strict. Its scripts are not run.
 * @param options.maxScriptWork What all scripts may cost together (`RunBudget`).
 * @param options.verificationTimeout How long the scripts may take with all that runs beside them, in milliseconds.
 * @param options.runScripts Where they run; by default, in this thread.
 * @throws what the tracker and the runner throw, and Error where something does not hold, in words that may quote a
 * stranger.
 */
export async function verifySubmission({
  beef,
  tracker,
  deployment,
  isProven = async () => false,
  maxScriptWork: maxWork,
  verificationTimeout: timeout = TIMEOUT,
  runScripts = runScriptsHere,
}: {
  beef: BeefContents
  tracker: SubmissionTracker | undefined
  deployment?: Deployment | undefined
  isProven?: (txid: string) => Promise<boolean>
  maxScriptWork: number
  verificationTimeout?: number
  runScripts?: ScriptRunner
}): Promise<void> {
  const settled = new Set<string>()
  const others = new Set<string>()
  for (const transaction of deployment === undefined ? [] : unprovenOf(beef, tracker)) {
    const { txid } = transaction
    if (
      deployment === undefined ||
      !spendsNodeNonStrictly(transaction, { deployment, sources: beef, others })
    )
      continue
    if (tracker === undefined || !(await isProven(txid))) throw notStrictError(txid)
    settled.add(txid)
  }
  const spenders: PricedSpender[] = []
  const proven: Proven[] = []
  const spentTxids = new Set<string>()
  for (const { txid, proof } of admittedTransactions(beef)) {
    const transaction = beef.transaction(txid)
    if (transaction === undefined) continue
    if (proof !== undefined) {
      if (tracker !== undefined) proven.push({ transaction, proof, ...placeOf(transaction, proof) })
      continue
    }
    if (!settled.has(txid)) spenders.push(spenderOf(transaction, beef))
    for (const { txid: source } of transaction.inputs) spentTxids.add(source)
  }
  requireSameDepths(proven)
  const likely = likelyWork(spenders, { maxWork })
  if (tracker !== undefined) await requireBlocks(proven, { tracker, spentTxids })
  if (spenders.length === 0) return
  const job = spenders.map(({ txid, raw, spent }) => ({ txid, raw, spent }))
  await runScripts({ spenders: job, likelyWork: likely, maxWork, timeout })
}

/** What has to be strict where it spends a node. What a proven transaction is built on is mined as well. */
function unprovenOf(beef: BeefContents, tracker: SubmissionTracker | undefined): TransactionView[] {
  const records =
    tracker === undefined
      ? knownTransactions(beef)
      : admittedTransactions(beef).filter(({ proof }) => proof === undefined)
  return records.flatMap(({ txid }) => beef.transaction(txid) ?? [])
}

type PricedSpender = ScriptSpender & { unlockingScripts: Uint8Array[] }

interface Proven {
  transaction: TransactionView
  proof: Proof
  /** The place of the transaction in its block. */
  offset: number
  /** How many levels the tree of the block has above its transactions. */
  depth: number
}

/** @throws Error where a coinbase is not the first of its block, or what is first is no coinbase: no block is so. */
function placeOf(transaction: TransactionView, { merklePath }: Proof): Pick<Proven, 'offset' | 'depth'> {
  const { txid } = transaction
  const path = readPath(merklePath)
  const offset = path.offsetOf(txid)
  if (offset === undefined) throw new Error(`the merkle path of ${txid} does not contain it`)
  const mintsCoins = countParts(transaction).inputs === 1 && isCoinbase(transaction)
  if (mintsCoins !== (offset === 0))
    throw new Error(
      `a coinbase, and nothing else, is the first transaction of a block: ${txid} is at offset ${offset}`,
    )
  return { offset, depth: path.depth }
}

/**
 * All transactions of a block stand at the same depth. Where two paths to one root do not agree on it, one of them takes an
 * inner node of the tree for a transaction.
 */
function requireSameDepths(proven: Proven[]): void {
  const depths = new Map<string, number>()
  for (const { transaction, proof, depth } of proven) {
    const other = depths.get(proof.root) ?? depth
    depths.set(proof.root, depth)
    if (other !== depth)
      throw new Error(
        `the merkle path of ${transaction.txid} has another depth than another one of its block`,
      )
  }
}

async function requireBlocks(
  proven: Proven[],
  { tracker, spentTxids }: { tracker: SubmissionTracker; spentTxids: ReadonlySet<string> },
): Promise<void> {
  tracker.requireFew?.(new Set(proven.map(({ proof: { height, root } }) => `${height} ${root}`)).size)
  for (const { transaction, proof, offset } of proven) {
    const { txid } = transaction
    if (!(await tracker.isValidRootForHeight(proof.root, proof.height)))
      throw new Error(`the merkle path of ${txid} leads to a root that its block does not have`)
    if (offset !== 0 || !spentTxids.has(txid)) continue
    const confirmations = (await tracker.currentHeight()) - proof.height + 1
    if (confirmations < COINBASE_MATURITY)
      throw new Error(
        `the coinbase ${txid} has ${confirmations} confirmations, and needs ${COINBASE_MATURITY} to be spent`,
      )
  }
}

/** @throws Error where the BEEF does not hold what it spends, or it pays out more than it has. */
function spenderOf({ txid, raw, inputs, outputs }: TransactionView, beef: BeefContents): PricedSpender {
  const spent: SpentOutput[] = []
  let left = 0
  for (const { txid: source, vout } of inputs) {
    const parent = beef.transaction(source)
    const output = parent && outputOf(parent, vout)
    if (output === undefined)
      throw new Error(`${txid} is unproven, and the BEEF does not contain ${source}_${vout}, which it spends`)
    spent.push({ satoshis: output.satoshis, lockingScript: output.lockingScript })
    left += output.satoshis
  }
  for (const { satoshis } of outputs) left -= satoshis
  if (left < 0) throw new Error(`${txid} spends more satoshis than its inputs have`)
  return { txid, raw, spent, unlockingScripts: inputs.map(({ unlockingScript }) => unlockingScript) }
}
