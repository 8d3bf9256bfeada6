import type { BeefContents } from '../../../backend/src/graph/read-beef.js'
import type { TransactionRecord } from '../../../backend/src/graph/records.js'
import { admittedTransactions } from '../../../backend/src/graph/transaction-records.js'
import { countParts, type TransactionView } from '../../../backend/src/protocol/transaction.js'
import type { Limits } from '../config/limits.js'
import { InvalidSubmissionError, SubmissionTooLargeError } from './submission-errors.js'

export type SubmissionLimits = Pick<
  Limits,
  | 'maxBeefTransactions'
  | 'maxBeefDepth'
  | 'maxBeefParts'
  | 'maxParts'
  | 'maxProvenInputs'
  | 'maxScriptBytes'
  | 'maxScriptWork'
  | 'verificationTimeout'
>

/**
 * Holds what somebody submits against the limits, cheapest first, before it waits for its turn.
 *
 * What a merkle path of the BEEF proves may have any number of parts, and scripts of any length: a mint that a block holds
 * cannot be left out without the whole branch that comes of it. Its path is checked before its parts are looked at, and no
 * script of it is run. How many inputs it has is bounded by memory alone.
 *
 * @param options.checksPaths Whether somebody is asked about merkle paths. If not, a path is anybody's word, and all
 * limits hold for every transaction.
 * @throws SubmissionTooLargeError for the first limit that it is over; InvalidSubmissionError for a transaction that may be
 * an inner node of a merkle tree.
 */
export function requireWithinLimits(
  beef: BeefContents,
  { limits, checksPaths }: { limits: SubmissionLimits; checksPaths: boolean },
): void {
  const { maxBeefTransactions, maxBeefDepth } = limits
  if (beef.txids.length > maxBeefTransactions)
    throw new SubmissionTooLargeError(`a BEEF may have at most ${maxBeefTransactions} transactions`)
  for (const txid of beef.txids) requireNoInnerNode(beef.transaction(txid))
  let parts = 0
  for (const txid of beef.txids) {
    const transaction = beef.transaction(txid)
    if (transaction === undefined) continue
    if (checksPaths && beef.proof(txid) !== undefined) {
      requireHoldable(transaction, limits)
      continue
    }
    requireTransactionWithinLimits(transaction, limits)
    const { inputs, outputs } = countParts(transaction)
    parts += inputs + outputs
  }
  if (parts > limits.maxBeefParts)
    throw new SubmissionTooLargeError(`a BEEF may have at most ${limits.maxBeefParts} inputs and outputs`)
  if (unprovenDepth(beef, admittedTransactions(beef)) > maxBeefDepth)
    throw new SubmissionTooLargeError(`a chain of unproven transactions may have at most ${maxBeefDepth}`)
}

/** Two hashes side by side: of inner nodes of merkle trees, everything but the length is a matter of work. */
const INNER_NODE_BYTES = 64

function requireNoInnerNode(transaction: TransactionView | undefined): void {
  if (transaction?.raw.length === INNER_NODE_BYTES)
    throw new InvalidSubmissionError(
      `${transaction.txid} has 64 bytes, so it could be an inner node of a merkle tree`,
    )
}

/** Of each input, some kilobytes are in memory while it is written; outputs are looked at one after another. */
function requireHoldable(transaction: TransactionView, { maxProvenInputs }: SubmissionLimits): void {
  const { inputs } = countParts(transaction)
  if (inputs > maxProvenInputs)
    throw new SubmissionTooLargeError(
      `${transaction.txid} has ${inputs} inputs; this host accepts at most ${maxProvenInputs} (MAX_PROVEN_INPUTS)`,
    )
}

function requireTransactionWithinLimits(
  transaction: TransactionView,
  { maxParts, maxScriptBytes }: SubmissionLimits,
): void {
  const { txid } = transaction
  const counts = countParts(transaction)
  // The engine asks its storage about every input, for every topic, while others wait their turn.
  if (Math.max(counts.inputs, counts.outputs) > maxParts)
    throw new SubmissionTooLargeError(`${txid} has more than ${maxParts} inputs or outputs`)
  const { inputs, outputs } = transaction
  const isLong = (script: Uint8Array): boolean => script.length > maxScriptBytes
  if (
    inputs.some(({ unlockingScript }) => isLong(unlockingScript)) ||
    outputs.some(({ lockingScript }) => isLong(lockingScript))
  )
    throw new SubmissionTooLargeError(`${txid} has a script of more than ${maxScriptBytes} bytes`)
}

/**
 * How many transactions the longest chain of unproven ones in a BEEF has, that of the subject back to a proven one; 0
 * where the subject is proven. Depth first without recursion, each transaction once: a chain is as long as strangers
 * make it, and where each spends two outputs of the one before, there are more ways through than could be walked.
 */
export function unprovenDepth(beef: BeefContents, transactions: TransactionRecord[]): number {
  const unproven = new Set(transactions.filter(({ proof }) => proof === undefined).map(({ txid }) => txid))
  const parentsOf = (txid: string): string[] => [
    ...new Set(beef.transaction(txid)?.inputs.map((input) => input.txid)),
  ]
  const depths = new Map<string, number>()
  const path: { txid: string; parents: string[]; depth: number }[] = []
  const enter = (txid: string): void => {
    path.push({ txid, parents: parentsOf(txid).filter((parent) => unproven.has(parent)), depth: 0 })
  }
  const { txid: subject } = beef.subject
  if (unproven.has(subject)) enter(subject)
  for (let step = path.at(-1); step !== undefined; step = path.at(-1)) {
    const parent = step.parents.at(-1)
    const known = parent === undefined ? undefined : depths.get(parent)
    if (parent === undefined) {
      depths.set(step.txid, step.depth + 1)
      path.pop()
    } else if (known === undefined) {
      enter(parent)
    } else {
      step.depth = Math.max(step.depth, known)
      step.parents.pop()
    }
  }
  return depths.get(subject) ?? 0
}
