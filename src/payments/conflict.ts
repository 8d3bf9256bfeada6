import { BeefError } from '../../backend/src/protocol/beef.js'
import { readBeefTransaction } from '../../backend/src/protocol/beef-transaction.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import { runScripts } from '../../backend/src/protocol/run-scripts.js'
import type { Transaction } from '../../backend/src/protocol/sdk-types.js'
import type { SpentOutput } from '../../backend/src/protocol/transaction.js'
import type { Headers } from '../client/verify-transactions.js'
import { spentBy } from './draft.js'

/** Another transaction that spends the same coin as ours, or as an unproven ancestor of ours. */
export interface Conflict {
  txid: string
  outpoint: string
  /** Whether it is in a block that the chain tracker knows. */
  isProven: boolean
}

/** A server that is asked about conflicts; its answers are verified. */
export interface Witness {
  /** A transaction with its merkle path or its ancestors, as BEEF; undefined if the server does not have it. */
  beefOf(txid: string): Promise<Uint8Array | undefined>
  /** The transactions that spend outputs, as far as the server knows. */
  spendersOf(outpoints: readonly string[]): Promise<string[]>
  /** Decides which blocks exist. */
  chainTracker: Headers
}

/** In the units of `runScripts`: many times what a covenant takes. */
const MAX_SCRIPT_WORK = 50_000_000

/**
 * The transaction that keeps one of ours from counting, verified: a server only says where to look. It is in a block, or its
 * script may spend the output that both spend.
 *
 * @param named Transactions that are said to be in conflict, or built on one that is.
 */
export async function conflictWith(
  transaction: Transaction,
  named: readonly string[],
  to: Witness,
): Promise<Conflict | undefined> {
  const spent = spentOutputs(transaction)
  const asked = new Set([...named, ...(await to.spendersOf([...spent.keys()]))])
  asked.delete(transaction.id('hex'))
  let unproven: Conflict | undefined
  for (const asking of asked) {
    const beef = await to.beefOf(asking)
    for (const other of beef === undefined ? [] : unprovenOf(readOther(beef, asking), { withProven: true })) {
      const txid = other.id('hex')
      for (const [input, each] of spentBy(other).entries()) {
        const outpoint = formatOutpoint(each)
        const { output, by } = spent.get(outpoint) ?? {}
        // An ancestor of ours conflicts only if another one of ours spends the same output.
        if (output === undefined || by?.every((spender) => spender === txid)) continue
        const isProven = await isInBlock(other, to.chainTracker)
        if (isProven) return { txid, outpoint, isProven }
        if (lets(other, { input, output })) unproven = { txid, outpoint, isProven }
      }
    }
  }
  return unproven
}

/** A transaction in a server's BEEF, if it is in a block that the chain tracker knows. */
export async function provenBy(
  beef: Uint8Array,
  txid: string,
  chainTracker: Headers,
): Promise<Transaction | undefined> {
  const shown = readOther(beef, txid)
  return shown !== undefined && (await isInBlock(shown, chainTracker)) ? shown : undefined
}

/** False without a merkle path, or without anybody to ask about it. */
async function isInBlock(transaction: Transaction, chainTracker: Headers): Promise<boolean> {
  const { merklePath } = transaction
  if (merklePath === undefined || chainTracker === 'scripts only') return false
  return await chainTracker.isValidRootForHeight(
    merklePath.computeRoot(transaction.id('hex')),
    merklePath.blockHeight,
  )
}

/** Undefined if the bytes do not contain it. */
function readOther(beef: Uint8Array, txid: string): Transaction | undefined {
  try {
    return readBeefTransaction(beef, { txid })
  } catch (error) {
    if (error instanceof BeefError) return undefined
    throw error
  }
}

/** A transaction and its unproven ancestors; `withProven` adds the proven ones that these spend. */
function unprovenOf(
  subject: Transaction | undefined,
  { withProven = false }: { withProven?: boolean } = {},
): Set<Transaction> {
  const found = new Set<Transaction>(subject && [subject])
  for (const { inputs, merklePath } of found) {
    if (merklePath !== undefined) continue
    for (const { sourceTransaction } of inputs)
      if (sourceTransaction && (withProven || sourceTransaction.merklePath === undefined))
        found.add(sourceTransaction)
  }
  return found
}

/** The outputs that a transaction and its unproven ancestors spend, by outpoint, with the spenders. */
function spentOutputs(transaction: Transaction): Map<string, { output: SpentOutput; by: string[] }> {
  const spent = new Map<string, { output: SpentOutput; by: string[] }>()
  for (const each of unprovenOf(transaction))
    for (const [index, { txid, vout }] of spentBy(each).entries()) {
      const { satoshis = 0, lockingScript } = each.inputs[index]?.sourceTransaction?.outputs[vout] ?? {}
      if (lockingScript === undefined) continue
      const outpoint = formatOutpoint({ txid, vout })
      const by = [...(spent.get(outpoint)?.by ?? []), each.id('hex')]
      const output = { satoshis, lockingScript: Uint8Array.from(lockingScript.toUint8Array()) }
      spent.set(outpoint, { output, by })
    }
  return spent
}

function lets(other: Transaction, { input, output }: { input: number; output: SpentOutput }): boolean {
  const spent: SpentOutput[] = []
  spent[input] = output
  const spender = { txid: other.id('hex'), raw: Uint8Array.from(other.toUint8Array()), spent, input }
  try {
    for (const _ of runScripts([spender], { maxWork: MAX_SCRIPT_WORK }));
    return true
  } catch {
    return false
  }
}
