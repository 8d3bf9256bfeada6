import { inParentsFirst, parentsOf } from '../../../backend/src/graph/ancestry.js'
import type { BeefContents } from '../../../backend/src/graph/read-beef.js'
import { viewOf } from '../../../backend/src/graph/stored-transaction.js'
import {
  admittedTransactions,
  holdsOrdinal,
  unsoundness,
} from '../../../backend/src/graph/transaction-records.js'
import { isInnerNode } from '../../../backend/src/protocol/block-rules.js'
import { NOT_STRICT } from '../../../backend/src/protocol/mint.js'
import { countParts, type TransactionView } from '../../../backend/src/protocol/transaction.js'
import type { Limits } from '../config/limits.js'
import { SubmissionError } from './errors.js'

/**
 * Checks a submission against the limits and the rules of any block, cheapest first, as far as its bytes alone show.
 *
 * A transaction that a merkle path of the BEEF proves may have any number of inputs and outputs, and scripts of any length: leaving
 * out a mined mint would lose the whole branch below it. Its path is checked before its parts are read, and its scripts are not
 * run. Only memory limits how many inputs it may have.
 *
 * @param options.checksPaths Whether merkle paths are checked. If not, anybody can make up a path, and all limits apply to every
 * transaction.
 * @throws SubmissionError for the first limit that is exceeded, and for a transaction that no block can hold, or that may be an
 * inner node of a merkle tree.
 */
export function assertSubmittable(
  beef: BeefContents,
  { limits, checksPaths }: { limits: Limits; checksPaths: boolean },
): void {
  const { maxBeefTransactions, maxBeefDepth } = limits
  if (beef.txids.length > maxBeefTransactions)
    throw new SubmissionError('TOO_LARGE', `a BEEF may have at most ${maxBeefTransactions} transactions`)
  for (const txid of beef.txids) assertNoInnerNode(beef.transaction(txid))
  const unproven: TransactionView[] = []
  for (const txid of beef.txids) {
    const transaction = beef.transaction(txid)
    if (transaction === undefined) continue
    if (checksPaths && beef.proof(txid) !== undefined) assertInputs(transaction, limits)
    else unproven.push(transaction)
  }
  assertParts(unproven, limits)
  for (const transaction of unproven) assertScripts(transaction, limits)
  if (unprovenDepth(beef) > maxBeefDepth)
    throw new SubmissionError(
      'TOO_LARGE',
      `a chain of unproven transactions may have at most ${maxBeefDepth}`,
    )
  const unsound = unsoundness(beef)
  if (unsound !== undefined) throw new SubmissionError('BAD_BODY', `the transaction is invalid: ${unsound}`)
}

/** The most tokens in a BEEF. A host has five; each takes a quarter of a millisecond under the write lock. */
const MAX_CLAIMS = 200

/**
 * Limits how many outputs of a BEEF claim to advertise this host: each costs a signature check, and anyone can write one.
 *
 * @throws SubmissionError
 */
export function assertFewAdvertisements(
  beef: BeefContents,
  { claimsIn }: { claimsIn: (transaction: TransactionView) => number },
): void {
  let claims = 0
  for (const txid of beef.txids) {
    const transaction = beef.transaction(txid)
    if (transaction !== undefined) claims += claimsIn(transaction)
  }
  if (claims > MAX_CLAIMS)
    throw new SubmissionError(
      'TOO_LARGE',
      `a BEEF may have at most ${MAX_CLAIMS} advertisements of this host`,
    )
}

function assertNoInnerNode(transaction: TransactionView | undefined): void {
  if (transaction !== undefined && isInnerNode(transaction))
    throw new SubmissionError(
      'BAD_BODY',
      `${transaction.txid} has 64 bytes, so it could be an inner node of a merkle tree`,
    )
}

/** Each input takes some kilobytes of memory while it is written; outputs are processed one after another. */
function assertInputs(transaction: TransactionView, { maxProvenInputs }: Limits): void {
  const { inputs } = countParts(transaction)
  if (inputs > maxProvenInputs)
    throw new SubmissionError(
      'TOO_LARGE',
      `${transaction.txid} has ${inputs} inputs; this host accepts at most ${maxProvenInputs}`,
    )
}

function assertParts(unproven: readonly TransactionView[], limits: Limits): void {
  const { maxBeefParts, maxUnprovenParts } = limits
  const counts = unproven.map(countParts)
  const inputs = counts.reduce((sum, each) => sum + each.inputs, 0)
  const outputs = counts.reduce((sum, each) => sum + each.outputs, 0)
  if (inputs + outputs > maxBeefParts)
    throw new SubmissionError('TOO_LARGE', `a BEEF may have at most ${maxBeefParts} inputs and outputs`)
  // Each takes about 0.1 ms to write, while other submissions wait. Scripts are read only if there are too many outputs.
  const ordinals = (): number =>
    unproven.reduce((sum, each) => sum + each.outputs.filter(holdsOrdinal).length, 0)
  if (inputs + outputs > maxUnprovenParts && inputs + ordinals() > maxUnprovenParts)
    throw new SubmissionError(
      'TOO_LARGE',
      `unproven transactions may have at most ${maxUnprovenParts} inputs and outputs with ordinals (twice MAX_BEEF_TRANSACTIONS)`,
    )
}

function assertScripts({ txid, inputs, outputs }: TransactionView, { maxScriptBytes }: Limits): void {
  const isLong = (script: Uint8Array): boolean => script.length > maxScriptBytes
  if (
    inputs.some(({ unlockingScript }) => isLong(unlockingScript)) ||
    outputs.some(({ lockingScript }) => isLong(lockingScript))
  )
    throw new SubmissionError('TOO_LARGE', `${txid} has a script of more than ${maxScriptBytes} bytes`)
}

/**
 * The length of the longest chain of unproven transactions in a BEEF, from the subject back to a proven one; 0 if the subject is
 * proven. Each transaction is visited once: if each spends two outputs of the previous one, there are too many paths to walk.
 */
export function unprovenDepth(beef: BeefContents): number {
  const unproven = new Map<string, { txid: string; parents: string[] }>()
  for (const each of admittedTransactions(beef))
    if (each.proof === undefined)
      unproven.set(each.txid, { txid: each.txid, parents: parentsOf(viewOf(each)) })
  const depths = new Map<string, number>()
  for (const { txid, parents } of inParentsFirst(unproven, (each) => each.parents)) {
    let depth = 0
    for (const parent of parents) depth = Math.max(depth, depths.get(parent) ?? 0)
    depths.set(txid, depth + 1)
  }
  return depths.get(beef.subject.txid) ?? 0
}

/** The error for an unproven transaction that is a loose mint (`isLooseMint`). */
export function notStrictError(txid: string): SubmissionError {
  return new SubmissionError('BAD_BODY', `${txid} spends a node: ${NOT_STRICT} (NOT_STRICT)`)
}
