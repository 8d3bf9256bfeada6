import { placingInputs } from '../protocol/ordinal-flow.js'
import { firstOutputs, isCoinbase, outputOf, type TransactionView } from '../protocol/transaction.js'
import { OUTPUTS_WITH_ORDINALS } from './flow.js'
import { memoizeByObject } from './memoize-by-object.js'
import type { BeefContents } from './read-beef.js'
import { type GraphRecords, graphRecords, type SpendRecord, type TransactionRecord } from './records.js'
import { rememberView } from './stored-transaction.js'

/**
 * What an admission tells of the transaction, whichever of its outputs is admitted: the transactions to keep, and what
 * they spend. Asked again for the same BEEF it gives the same object, since a topic may admit as many outputs
 * as fit into a transaction.
 */
export const transactionRecords = memoizeByObject((beef: BeefContents): GraphRecords => {
  const transactions = admittedTransactions(beef)
  return graphRecords({ transactions, spends: spendsOf(transactions, beef) })
})

/** What transactions of a BEEF spend. */
export function spendsOf(transactions: TransactionRecord[], beef: BeefContents): SpendRecord[] {
  return transactions.flatMap(({ txid }) => {
    const transaction = beef.transaction(txid)
    return transaction === undefined ? [] : spendsBy(transaction)
  })
}

/** What a transaction spends. A coinbase spends nothing: what all of them name is no outpoint for which they are rivals. */
export function spendsBy({ txid, inputs }: Pick<TransactionView, 'txid' | 'inputs'>): SpendRecord[] {
  if (isCoinbase({ inputs })) return []
  return inputs.map((input) => ({ outpoint: { txid: input.txid, vout: input.vout }, spender: txid }))
}

/**
 * The transactions to keep when the subject of a BEEF is admitted: the subject, and where it is not proven, its
 * ancestors in the BEEF down to proven ones, so that a BEEF can be put together for it later.
 */
export const admittedTransactions = memoizeByObject((beef: BeefContents): TransactionRecord[] => {
  const kept = new Map<string, TransactionRecord>()
  const waiting = [beef.subject.txid]
  for (let txid = waiting.pop(); txid !== undefined; txid = waiting.pop()) {
    if (kept.has(txid)) continue
    const view = beef.transaction(txid)
    if (view === undefined) continue
    const proof = beef.proof(txid)
    rememberView(view)
    kept.set(txid, { txid, raw: view.raw, ...(proof && { proof }) })
    // One by one: there may be more than a call takes arguments.
    if (proof === undefined) for (const input of view.inputs) waiting.push(input.txid)
  }
  return [...kept.values()]
})

/**
 * All of a BEEF that is known with its subject: {@link admittedTransactions}, and whatever else of it these are built on,
 * however far back it goes. A verifier stops at what is proven, so what stands behind that is without proof; it is authentic
 * even so, for what spends it names it by its hash.
 */
export const knownTransactions = memoizeByObject((beef: BeefContents): TransactionRecord[] => {
  const known = new Map(admittedTransactions(beef).map((transaction) => [transaction.txid, transaction]))
  const walked = new Set<string>()
  const waiting = [...known.keys()]
  for (let txid = waiting.pop(); txid !== undefined; txid = waiting.pop()) {
    const view = walked.has(txid) ? undefined : beef.transaction(txid)
    walked.add(txid)
    for (const input of view?.inputs ?? []) {
      const source = known.has(input.txid) ? undefined : beef.transaction(input.txid)
      if (source === undefined) continue
      rememberView(source)
      known.set(source.txid, { txid: source.txid, raw: source.raw })
      waiting.push(source.txid)
    }
  }
  return [...known.values()]
})

/**
 * What of a BEEF is to be kept beside that when `tm_ordinals` admits an output of a proven subject: the transactions
 * whose values place its 1-sat outputs (BRC-159), so that the provenance of an ordinal can be shown. Those of an
 * unproven subject are among its ancestors already.
 *
 * They stand without proof: a verifier stops at the proven subject, so that nobody has held theirs against the chain. They
 * are authentic even so, for the subject names them by their hash; a host may hold theirs against it, and tell them. Told once for all outputs of the subject, of which
 * there may be as many as fit into a transaction; so up to its last 1-sat output, admitted or not.
 */
export const placingRecords = memoizeByObject((beef: BeefContents): GraphRecords => {
  const { txid, inputs } = beef.subject
  const outputs = firstOutputs(beef.subject, OUTPUTS_WITH_ORDINALS)
  const output = outputs.findLastIndex(({ satoshis }) => satoshis === 1)
  if (output === -1 || beef.proof(txid) === undefined) return graphRecords({})
  const sources = inputs.map((input) => beef.transaction(input.txid))
  const count = placingInputs({
    inputValues: inputs.map((input, i) => {
      const source = sources[i]
      return source && outputOf(source, input.vout)?.satoshis
    }),
    outputValues: outputs.map(({ satoshis }) => satoshis),
    output,
  })
  const placing = new Set(sources.slice(0, count).filter((source) => source !== undefined))
  const transactions = [...placing].map(({ txid, raw }) => ({ txid, raw }))
  return graphRecords({ transactions, spends: spendsOf(transactions, beef) })
})
