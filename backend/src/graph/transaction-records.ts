import type { BeefContents } from './read-beef.js'
import { type GraphRecords, graphRecords, type TransactionRecord } from './records.js'
import { remembered } from './remembered.js'

/**
 * What an admission tells of the transaction, whichever of its outputs is admitted: the transactions to keep, and what
 * the subject spends. Asked again for the same BEEF it gives the same object, since a topic may admit as many outputs
 * as fit into a transaction.
 */
export const transactionRecords = remembered((beef: BeefContents): GraphRecords => {
  const { txid, inputs } = beef.subject
  return graphRecords({
    transactions: admittedTransactions(beef),
    spends: inputs.map((input) => ({ outpoint: { txid: input.txid, vout: input.vout }, spender: txid })),
  })
})

/**
 * The transactions to keep when the subject of a BEEF is admitted: the subject, and where it is not proven, its
 * ancestors in the BEEF down to proven ones, so that a BEEF can be put together for it later.
 */
export function admittedTransactions(beef: BeefContents): TransactionRecord[] {
  const kept = new Map<string, TransactionRecord>()
  const waiting = [beef.subject.txid]
  for (let txid = waiting.pop(); txid !== undefined; txid = waiting.pop()) {
    if (kept.has(txid)) continue
    const view = beef.transaction(txid)
    if (view === undefined) continue
    const proof = beef.proof(txid)
    kept.set(txid, { txid, raw: view.raw, ...(proof && { proof }) })
    if (proof === undefined) waiting.push(...view.inputs.map((input) => input.txid))
  }
  return [...kept.values()]
}
