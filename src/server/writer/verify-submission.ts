import type { ChainTracker } from '@bsv/sdk'
import { ChainTrackerError } from '../../../backend/src/graph/errors.js'
import { type BeefContents, pathOf } from '../../../backend/src/graph/read-beef.js'
import { blockText, type Proof, type TransactionRecord } from '../../../backend/src/graph/records.js'
import { viewOf } from '../../../backend/src/graph/stored-transaction.js'
import { isLooseMint } from '../../../backend/src/graph/topic-rules.js'
import { admittedTransactions, knownTransactions } from '../../../backend/src/graph/transaction-records.js'
import { BeefError } from '../../../backend/src/protocol/beef.js'
import { COINBASE_MATURITY } from '../../../backend/src/protocol/block-rules.js'
import type { Deployment } from '../../../backend/src/protocol/mint.js'
import { monotonic } from '../../../backend/src/protocol/monotonic.js'
import { likelyWork, type PricedSpender } from '../../../backend/src/protocol/run-scripts.js'
import {
  countParts,
  isCoinbase,
  outputOf,
  type SpentOutput,
  type TransactionView,
} from '../../../backend/src/protocol/transaction.js'
import { SubmissionError } from './errors.js'
import { runScriptsHere, type ScriptRunner } from './script-scheduler.js'
import { notStrictError } from './submission-rules.js'

/** How long the scripts of a submission may take by default, in milliseconds. */
const TIMEOUT = 60_000

/**
 * Verifies the subject of a BEEF: its merkle path, or its scripts and those of its unproven ancestors, and the merkle paths of the
 * transactions that these spend. Like the SDK's `Transaction.verify`, but without its recursion (a long chain overflows the stack,
 * a dense one never ends), each transaction once, and within a budget for scripts. Cheapest first: what the bytes alone show, then
 * the chain tracker, then the scripts.
 *
 * An unproven transaction may spend a coinbase if the next block may. Only its path shows that the coinbase is in a block; the SDK
 * refuses old coinbases instead.
 *
 * @param options.tracker If undefined, merkle paths are trusted; but as anybody can make those up, nothing counts as proven when
 * judging mints.
 * @param options.deployment The tree whose nodes only strict mints may spend without a proof; none by default.
 * @param options.isProven Whether the store has a proof of a transaction that brings none; asked for non-strict spends of a node.
 * Their scripts are not run.
 * @param options.maxScriptWork The most that all scripts may cost together (`RunBudget`).
 * @param options.verificationTimeout How long the scripts may take along with everything that runs in parallel, in milliseconds.
 * @param options.runScripts Runs the scripts; by default, in this thread.
 * @returns The proven sources of its ordinals ({@link provenSources}) that are in the chain.
 * @throws errors of the tracker and the runner; Error if something is invalid, whose message may quote a stranger.
 */
export async function verifySubmission(options: {
  beef: BeefContents
  tracker: SubmissionTracker | undefined
  deployment?: Deployment | undefined
  isProven?: (txid: string) => boolean
  maxScriptWork: number
  verificationTimeout?: number
  runScripts?: ScriptRunner
}): Promise<TransactionRecord[]> {
  const { beef, tracker, deployment, maxScriptWork: maxWork, verificationTimeout = TIMEOUT } = options
  const { isProven = () => false, runScripts = runScriptsHere } = options
  const provenHere = new Set<string>()
  const others = new Set<string>()
  for (const { transaction, hasPath } of unprovenOf(beef, tracker)) {
    const { txid } = transaction
    const rules = { deployment, sources: beef, others, ofAnySize: hasPath }
    if (!isLooseMint(transaction, rules)) continue
    if (tracker === undefined || !isProven(txid)) throw notStrictError(txid)
    provenHere.add(txid)
  }
  const spenders: PricedSpender[] = []
  const proven: Proven[] = []
  const spentTxids = new Set<string>()
  for (const record of admittedTransactions(beef)) {
    const { txid, proof } = record
    const transaction = viewOf(record)
    if (proof !== undefined) {
      if (tracker !== undefined) proven.push({ transaction, proof, ...placeOf(transaction, proof) })
      continue
    }
    if (!provenHere.has(txid)) spenders.push(spenderOf(transaction, beef))
    for (const { txid: source } of transaction.inputs) spentTxids.add(source)
  }
  assertSameDepths(proven)
  const likely = likelyWork(spenders, { maxWork })
  if (tracker !== undefined && proven.length > 0) await assertInChain(proven, { tracker, spentTxids })
  if (spenders.length > 0) {
    const job = spenders.map(({ txid, raw, spent }) => ({ txid, raw, spent }))
    await runScripts({ spenders: job, likelyWork: likely, maxWork, timeout: verificationTimeout })
  }
  const sources = provenSources(beef)
  if (tracker === undefined) return sources
  const inChain: TransactionRecord[] = []
  for (const source of sources) {
    const { root, height } = source.proof
    if (await tracker.isValidRootForHeight(root, height)) inChain.push(source)
  }
  return inChain
}

/**
 * The transactions that may spend a node only strictly. The ancestors of a proven one are mined as well. If no tracker is asked
 * about blocks, a merkle path only means that a transaction does not have to be relayed any more.
 */
function unprovenOf(
  beef: BeefContents,
  tracker: SubmissionTracker | undefined,
): { transaction: TransactionView; hasPath: boolean }[] {
  const records =
    tracker === undefined
      ? knownTransactions(beef)
      : admittedTransactions(beef).filter(({ proof }) => proof === undefined)
  return records.map((each) => ({ transaction: viewOf(each), hasPath: each.proof !== undefined }))
}

interface Proven {
  transaction: TransactionView
  proof: Proof
  /** The index of the transaction in its block. */
  offset: number
  /** How many levels the block's merkle tree has above its transactions. */
  depth: number
}

/** @throws Error unless the first transaction of the block is its coinbase and all others are not. */
function placeOf(transaction: TransactionView, proof: Proof): Pick<Proven, 'offset' | 'depth'> {
  const { txid } = transaction
  const path = pathOf(proof)
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
 * All transactions of a block are at the same depth of its merkle tree. If two paths to one root disagree, one of them treats an
 * inner node as a transaction.
 */
function assertSameDepths(proven: Proven[]): void {
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

async function assertInChain(
  proven: Proven[],
  { tracker, spentTxids }: { tracker: SubmissionTracker; spentTxids: ReadonlySet<string> },
): Promise<void> {
  tracker.assertBlocks(new Set(proven.map(({ proof }) => blockText(proof))).size)
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

/** @throws Error if the BEEF lacks an output that it spends, or its outputs exceed its inputs. */
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

/** The most blocks that the tracker is asked about only for sources. */
const MAX_SOURCE_BLOCKS = 32

/**
 * The transactions that place the ordinals of proven ones, with their own merkle paths. Verification stops at proven transactions,
 * so their sources are checked separately: with the paths, a BEEF of the subject and its sources is complete (BRC-62). A source
 * with an invalid path is left out; it is still authentic, as its spender names it by its hash.
 */
function provenSources(contents: BeefContents): (TransactionRecord & { proof: Proof })[] {
  const proven: (TransactionRecord & { proof: Proof })[] = []
  const roots = new Set<string>()
  const verified = new Set(admittedTransactions(contents).map(({ txid }) => txid))
  for (const { txid, raw } of knownTransactions(contents)) {
    if (verified.has(txid)) continue
    const proof = validProof(txid, contents)
    if (proof === undefined) continue
    if (!roots.has(proof.root) && roots.size === MAX_SOURCE_BLOCKS) continue
    roots.add(proof.root)
    proven.push({ txid, raw, proof })
  }
  return proven
}

function validProof(txid: string, { proof }: BeefContents): Proof | undefined {
  try {
    return proof(txid)
  } catch (error) {
    if (!(error instanceof BeefError)) throw error
    // A source needs no path, so an invalid one is no reason to refuse the submission.
    return undefined
  }
}

/**
 * A chain tracker for one submission, which may bring many transactions of one block: asks about each block once. Keeping answers
 * longer would hide a reorganisation.
 */
export class SubmissionTracker implements ChainTracker {
  private readonly answers = new Map<string, Promise<boolean>>()
  private readonly maxBlocks: number
  private readonly end: number
  private tip: Promise<number> | undefined

  /**
   * @param limits.maxBlocks The most blocks to ask about; any number by default.
   * @param limits.timeout How long to keep asking, in milliseconds; forever by default.
   */
  constructor(
    private readonly tracker: ChainTracker,
    { maxBlocks = Infinity, timeout = Infinity }: { maxBlocks?: number; timeout?: number } = {},
  ) {
    this.maxBlocks = maxBlocks
    this.end = monotonic() + timeout
  }

  /** @throws SubmissionError if that is too many blocks. */
  assertBlocks(count: number): void {
    const { maxBlocks } = this
    if (count > maxBlocks)
      throw new SubmissionError(
        'TOO_LARGE',
        `the proofs of a submission may lead to at most ${maxBlocks} blocks`,
      )
  }

  /** @throws SubmissionError for one block too many; ChainTrackerError after the timeout; errors of the tracker. */
  async isValidRootForHeight(root: string, height: number): Promise<boolean> {
    const key = blockText({ height, root })
    let answer = this.answers.get(key)
    if (answer === undefined) {
      this.assertBlocks(this.answers.size + 1)
      this.assertInTime()
      answer = this.tracker.isValidRootForHeight(root, height)
      this.answers.set(key, answer)
    }
    return await answer
  }

  async currentHeight(): Promise<number> {
    this.assertInTime()
    this.tip ??= this.tracker.currentHeight()
    return await this.tip
  }

  private assertInTime(): void {
    if (monotonic() > this.end)
      throw new ChainTrackerError(
        'the chain tracker is too slow to answer about all blocks of the submission',
      )
  }
}
