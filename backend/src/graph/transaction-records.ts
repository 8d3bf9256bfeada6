import { type ChainPosition, isInnerNode, lockIn, reasonAgainst } from '../protocol/block-rules.js'
import { type Inscription, readInscription } from '../protocol/inscription.js'
import { type Predecessor, predecessorsOf } from '../protocol/ordinal-flow.js'
import type { Outpoint } from '../protocol/outpoint.js'
import {
  firstOutputs,
  isCoinbase,
  outputOf,
  type TransactionOutput,
  type TransactionView,
} from '../protocol/transaction.js'
import { memoizeByObject } from './memoize-by-object.js'
import type { BeefContents } from './read-beef.js'
import type { SpendRecord, TransactionRecord } from './records.js'
import { cacheView, storedTransaction, type TransactionSource, viewOf } from './stored-transaction.js'

export function spendsOf(transactions: readonly TransactionRecord[]): SpendRecord[] {
  return transactions.flatMap((each) => spendsBy(viewOf(each)))
}

/** The spends of a transaction. A coinbase has none: all coinbases name the same null outpoint, and do not conflict. */
export function spendsBy({ txid, inputs }: Pick<TransactionView, 'txid' | 'inputs'>): SpendRecord[] {
  if (isCoinbase({ inputs })) return []
  return inputs.map((input) => ({ outpoint: { txid: input.txid, vout: input.vout }, spender: txid }))
}

/**
 * The transactions to store when the subject of a BEEF is admitted: the subject and, if it is unproven, its ancestors in the
 * BEEF down to proven ones, so that a BEEF can be assembled for it later.
 */
export const admittedTransactions = memoizeByObject((beef: BeefContents): TransactionRecord[] => {
  const admitted = new Map<string, TransactionRecord>()
  const waiting = [beef.subject.txid]
  for (let txid = waiting.pop(); txid !== undefined; txid = waiting.pop()) {
    if (admitted.has(txid)) continue
    const view = beef.transaction(txid)
    if (view === undefined) continue
    const proof = beef.proof(txid)
    cacheView(view)
    admitted.set(txid, { txid, raw: view.raw, ...(proof && { proof }) })
    // One by one: there may be more than a call can have arguments.
    if (proof === undefined) for (const input of view.inputs) waiting.push(input.txid)
  }
  return [...admitted.values()]
})

/**
 * All transactions of a BEEF that are authentic if its subject is: {@link admittedTransactions} and all their ancestors in it.
 * Verification stops at proven ones, so their ancestors have no proof, but their spenders name them by their hash.
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
      cacheView(source)
      known.set(source.txid, { txid: source.txid, raw: source.raw })
      waiting.push(source.txid)
    }
  }
  return [...known.values()]
})

/** Whether an output that `tm_names` admitted is a node, and not a name. */
export function isNodeOutpoint(outpoint: Outpoint, genesis: Outpoint): boolean {
  if (outpoint.txid === genesis.txid) return outpoint.vout === genesis.vout
  return outpoint.vout === 0 || outpoint.vout === 1
}

const inscriptions = new WeakMap<TransactionOutput, Inscription>()

/** A script up to this length, in bytes, is read again about as fast as it is looked up. */
const SHORT = 256

/** The inscription in an output's script; parsed once per output. */
export function inscriptionOf(output: TransactionOutput): Inscription {
  const known = inscriptions.get(output)
  if (known !== undefined) return known
  const inscription = readInscription(output.lockingScript)
  const { content, map } = inscription
  // Short ones with nothing in them are not cached: a transaction may have millions of such outputs.
  if (content !== undefined || map.length > 0 || output.lockingScript.length > SHORT)
    inscriptions.set(output, inscription)
  return inscription
}

/** Whether `tm_ordinals` admits an output for its own content, or MAP in one satoshi. */
export function holdsOrdinal(output: TransactionOutput): boolean {
  const { content, map } = inscriptionOf(output)
  return content !== undefined || (output.satoshis === 1 && map.length > 0)
}

/**
 * `tm_ordinals` considers only this many outputs of a transaction, the first ones: each that it admits takes some kilobytes while
 * it is written. Later ones are no ordinals here; a name always is one, as the covenant puts it into output 2.
 */
export const OUTPUTS_WITH_ORDINALS = 100_000

/** How 1-sat coins flow through a transaction (BRC-159). */
export interface Flow {
  /** Satoshis of each input, but of a coinbase; undefined if neither the BEEF nor the store has the spent output. */
  inputValues: (number | undefined)[]
  /** For each output that is considered, the input whose coin it continues. */
  predecessors: Predecessor[]
}

/** The one input of a coinbase spends no coin that an output could continue. */
const OF_COINBASE = [0]

/** For each output that `tm_ordinals` considers, the input whose 1-sat coin it received (BRC-159). */
export function predecessorsIn(
  transaction: TransactionView,
  inputValues: readonly (number | undefined)[],
): Predecessor[] {
  return predecessorsOf({
    inputValues: isCoinbase(transaction) ? OF_COINBASE : inputValues,
    outputValues: firstOutputs(transaction, OUTPUTS_WITH_ORDINALS).map(({ satoshis }) => satoshis),
  })
}

const flows = new WeakMap<BeefContents, Promise<Flow>>()

/** The flow through the subject of a BEEF; computed once per BEEF. */
export function flowOf(beef: BeefContents, store: TransactionSource | undefined): Promise<Flow> {
  const known = flows.get(beef)
  if (known !== undefined) return known
  const flow = computeFlow(beef, store)
  flows.set(beef, flow)
  // A store that failed may answer the next time.
  flow.catch(() => flows.delete(beef))
  return flow
}

async function computeFlow(beef: BeefContents, store: TransactionSource | undefined): Promise<Flow> {
  const { subject } = beef
  const inputValues: Flow['inputValues'] = []
  for (const { txid, vout } of isCoinbase(subject) ? [] : subject.inputs) {
    const source = beef.transaction(txid) ?? (await storedTransaction(txid, store))
    inputValues.push(source && outputOf(source, vout)?.satoshis)
  }
  return { inputValues, predecessors: predecessorsIn(subject, inputValues) }
}

/**
 * Why no block can hold a transaction of a BEEF, even if its scripts and its merkle path pass ({@link reasonAgainst},
 * {@link isInnerNode}). Undefined if nothing is wrong. Computed once per BEEF, for the host and each of its topics.
 */
export const unsoundness = memoizeByObject((beef: BeefContents): string | undefined => {
  for (const record of admittedTransactions(beef)) {
    const { txid } = record
    if (isInnerNode(record)) return `${txid} has 64 bytes, so it could be an inner node of a merkle tree`
    const reason = record.proof === undefined ? reasonAgainst(viewOf(record)) : undefined
    if (reason !== undefined) return `${txid} ${reason}`
  }
  return undefined
})

/**
 * The chain position from which a block can hold a transaction and its ancestors; undefined if one can already. Transactions that
 * the BEEF or the store proves were judged by the chain.
 */
export function lockOf(
  beef: BeefContents,
  store: { heightOf(txid: string): number | undefined },
): ChainPosition | undefined {
  const lock = { height: 0, time: 0 }
  for (const record of admittedTransactions(beef)) {
    const own = record.proof === undefined ? lockIn(viewOf(record)) : undefined
    if (own === undefined || store.heightOf(record.txid) !== undefined) continue
    lock.height = Math.max(lock.height, own.height)
    lock.time = Math.max(lock.time, own.time)
  }
  return lock.height === 0 && lock.time === 0 ? undefined : lock
}
