import { LRUCache } from 'lru-cache'
import { type AncestorEntry, WHOLE_TRANSACTION } from '../../../backend/src/graph/ancestor-queue.js'
import type { GraphStore } from '../../../backend/src/graph/graph-store.js'
import type { TransactionRecord } from '../../../backend/src/graph/records.js'
import { readOutline } from '../../../backend/src/graph/stored-transaction.js'
import { placement, predecessorsOf } from '../../../backend/src/protocol/ordinal-flow.js'
import type { Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { readTransaction } from '../../../backend/src/protocol/transaction.js'
import type { ChainSource } from '../sources/chain-source.js'
import { ChainSourceError, FollowError } from '../sources/errors.js'
import type { GatherLimits } from './ancestors.js'

/** How many transactions are remembered that no source knows. */
const MAX_UNKNOWN = 10_000

/**
 * A chain source that is asked once for a transaction that several ordinals need at the same time, and that is not asked again
 * for a while for one that it did not know: a transaction may have thousands of outputs that wait for the same one.
 */
export class SharedSource implements Pick<ChainSource, 'transaction'> {
  private readonly asked = new LRUCache<
    string,
    { at: number; answer: Promise<TransactionRecord | undefined> }
  >({
    max: MAX_UNKNOWN,
  })

  /**
   * @param options.forget After how many milliseconds it is asked again.
   * @param options.now A clock, in milliseconds.
   */
  constructor(
    private readonly source: Pick<ChainSource, 'transaction'>,
    private readonly options: { forget: number; now: () => number },
  ) {}

  transaction(txid: string, limits: { maxBytes: number }): Promise<TransactionRecord | undefined> {
    const { forget, now } = this.options
    const key = `${txid} ${limits.maxBytes}`
    const known = this.asked.get(key)
    if (known !== undefined && now() - known.at < forget) return known.answer
    const answer = this.source.transaction(txid, limits)
    this.asked.set(key, { at: now(), answer })
    // What is found will be stored, and is not kept in memory.
    const drop = (): boolean => this.asked.delete(key)
    answer.then((record) => record && drop(), drop)
    return answer
  }
}

/** A chain source that fetches each transaction once, and no more than a limit. */
export class BoundedSource implements Pick<ChainSource, 'transaction'> {
  readonly fetched = { transactions: 0, bytes: 0 }
  private readonly known = new Map<string, TransactionRecord | undefined>()

  constructor(
    private readonly source: Pick<ChainSource, 'transaction'>,
    private readonly limits: GatherLimits,
  ) {}

  /** @throws FollowError `TOO_LARGE` beyond the limit. */
  async transaction(
    txid: string,
    { maxBytes }: { maxBytes: number },
  ): Promise<TransactionRecord | undefined> {
    if (this.known.has(txid)) return this.known.get(txid)
    const { fetched, limits } = this
    const left = limits.maxBytes - fetched.bytes
    if (fetched.transactions >= limits.maxTransactions || left <= 0)
      throw new FollowError('TOO_LARGE', 'an ordinal has more missing ancestors than MAX_ANCESTORS allows')
    const record = await this.source.transaction(txid, { maxBytes: Math.min(maxBytes, left) })
    this.known.set(txid, record)
    if (record !== undefined) {
      fetched.transactions++
      fetched.bytes += record.raw.length
    }
    return record
  }
}

interface MissingOptions {
  store: Pick<GraphStore, 'transactions'>
  source: BoundedSource
  /** How much to fetch at most, about. */
  batch: GatherLimits
  /** The limits of a submission. */
  limits: GatherLimits
}

/** A transaction to be admitted. */
export interface MissingAncestor {
  record: TransactionRecord
  /** The fetched ones among those whose values place an ordinal in it. */
  sources: TransactionRecord[]
}

/**
 * Fetches the transactions through which the ordinal in an output came, from that output back to the first one that is stored,
 * to the origin, or for a batch; and with each the ones whose values place it.
 *
 * @returns What is to be admitted, newest first. With `failure`, what is missing before could not be had: errors of the
 * source, or what {@link isOfBranch} says.
 */
export async function missingAncestors(
  { outpoint, previous }: Pick<AncestorEntry, 'outpoint' | 'previous'>,
  options: MissingOptions,
): Promise<{ ancestors: MissingAncestor[]; failure?: Error }> {
  const { store, source, batch, limits } = options
  const ancestors: MissingAncestor[] = []
  try {
    let coin: Outpoint | undefined = previous
    if (coin === undefined) {
      const { length = 0 } = store.transactions.raw(outpoint.txid) ?? {}
      if (length > limits.maxBytes)
        throw new FollowError('TOO_LARGE', `${outpoint.txid} is longer than ${limits.maxBytes} bytes`)
      const own = store.transactions.get(outpoint.txid)
      if (own === undefined) return { ancestors }
      const ancestor = { record: own, sources: [] }
      ancestors.push(ancestor)
      coin = await receivedBy(ancestor, { ...options, vout: outpoint.vout })
    }
    while (coin !== undefined && !isOver(source.fetched, batch) && !isStored(coin.txid, options)) {
      const record = await source.transaction(coin.txid, limits)
      if (record === undefined) throw notKnown(coin.txid)
      const ancestor = { record, sources: [] }
      ancestors.push(ancestor)
      coin = await receivedBy(ancestor, { ...options, vout: coin.vout })
    }
    return { ancestors }
  } catch (failure) {
    if (!(failure instanceof FollowError || failure instanceof ChainSourceError)) throw failure
    return { ancestors, failure }
  }
}

function isOver(fetched: BoundedSource['fetched'], { maxTransactions, maxBytes }: GatherLimits): boolean {
  return fetched.transactions >= maxTransactions || fetched.bytes >= maxBytes
}

function isStored(txid: string, { store }: MissingOptions): boolean {
  return store.transactions.raw(txid) !== undefined
}

/**
 * The 1-sat coin that an output received; undefined for none, and if the batch is over. Reads as many of the spent outputs as
 * place it (BRC-159); those that are fetched are added to the sources.
 *
 * @param options.vout With {@link WHOLE_TRANSACTION}, the last output that may hold an ordinal is placed.
 * @throws FollowError `NOT_KNOWN` if neither the store nor the source has one of them.
 */
async function receivedBy(
  { record, sources }: MissingAncestor,
  options: MissingOptions & { vout: number },
): Promise<Outpoint | undefined> {
  const { inputs, outputs } = readTransaction(record.raw, { txid: record.txid })
  const outputValues = outputs.map(({ satoshis }) => satoshis)
  const output = options.vout === WHOLE_TRANSACTION ? outputValues.lastIndexOf(1) : options.vout
  const isPlaced = placement({ outputValues, output })
  const inputValues: (number | undefined)[] = []
  // A transaction may spend thousands of outputs of another.
  const read = new Map<string, readonly number[]>()
  for (const input of inputs) {
    const values = read.get(input.txid) ?? (await outputValuesOf(input.txid, sources, options))
    if (values === undefined) return undefined
    read.set(input.txid, values)
    const satoshis = values[input.vout]
    inputValues.push(satoshis)
    if (isPlaced(satoshis)) break
  }
  const predecessor = predecessorsOf({ inputValues, outputValues })[output]
  const input = predecessor?.kind === 'input' ? inputs[predecessor.input] : undefined
  return input && { txid: input.txid, vout: input.vout }
}

/** Undefined if it would have to be fetched, and the batch is over. */
async function outputValuesOf(
  txid: string,
  sources: TransactionRecord[],
  { store, source, batch, limits }: MissingOptions,
): Promise<readonly number[] | undefined> {
  const stored = await readOutline(txid, store.transactions)
  if (stored !== undefined) return stored.outputValues
  if (isOver(source.fetched, batch)) return undefined
  const record = await source.transaction(txid, limits)
  if (record === undefined) throw notKnown(txid)
  sources.push(record)
  return readTransaction(record.raw, { txid }).outputs.map(({ satoshis }) => satoshis)
}

function notKnown(txid: string): FollowError {
  return new FollowError('NOT_KNOWN', `no chain source knows ${txid}, which places an ordinal`)
}
