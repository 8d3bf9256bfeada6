import { type AncestorEntry, WHOLE_TRANSACTION } from '../../backend/src/graph/ancestor-queue.js'
import type { GraphStore } from '../../backend/src/graph/graph-store.js'
import type { TransactionRecord } from '../../backend/src/graph/records.js'
import { readOutline } from '../../backend/src/graph/stored-transaction.js'
import { placement, predecessorsOf } from '../../backend/src/protocol/ordinal-flow.js'
import { formatOutpoint, type Outpoint } from '../../backend/src/protocol/outpoint.js'
import { readTransaction } from '../../backend/src/protocol/transaction.js'
import type { GatherLimits } from './ancestors.js'
import type { ChainSource } from './chain-source.js'
import { FollowError, isOfBranch } from './errors.js'

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

/**
 * Fetches the transactions through which the ordinal in an output came, from that output back to the first one that is stored,
 * to the origin, or for a batch.
 *
 * @returns The transactions to be admitted, newest first. The first may be the one of the output, if what it spends has to be
 * stored to place it. With `failure`, what is missing before these could not be had.
 * @throws Errors of the source.
 */
export async function missingAncestors(
  { outpoint, previous }: Pick<AncestorEntry, 'outpoint' | 'previous'>,
  options: MissingOptions,
): Promise<{ transactions: TransactionRecord[]; failure?: Error }> {
  const { store, source, batch, limits } = options
  const transactions: TransactionRecord[] = []
  try {
    let coin: Outpoint | undefined = previous
    if (coin === undefined) {
      const own = await store.transactions.get(outpoint.txid)
      if (own === undefined) return { transactions }
      if (outpoint.vout === WHOLE_TRANSACTION) return { transactions: [own] }
      coin = await receivedBy({ record: own, vout: outpoint.vout }, options)
      transactions.push(own)
    }
    while (coin !== undefined) {
      if (await isStored(coin.txid, options)) break
      const record = await source.transaction(coin.txid, limits)
      if (record === undefined) throw notKnown(coin)
      transactions.push(record)
      if (isOver(source.fetched, batch)) break
      coin = await receivedBy({ record, vout: coin.vout }, options)
    }
    return { transactions }
  } catch (error) {
    if (!isOfBranch(error)) throw error
    return { transactions, failure: error }
  }
}

function isOver(fetched: BoundedSource['fetched'], { maxTransactions, maxBytes }: GatherLimits): boolean {
  return fetched.transactions >= maxTransactions || fetched.bytes >= maxBytes
}

async function isStored(txid: string, { store }: MissingOptions): Promise<boolean> {
  return (await store.transactions.raw(txid)) !== undefined
}

/**
 * The 1-sat coin that an output received; undefined for none. Reads as many of the spent outputs as place it (BRC-159).
 *
 * @throws FollowError `NOT_KNOWN` if neither the store nor the source has one of them.
 */
async function receivedBy(
  { record, vout }: { record: TransactionRecord; vout: number },
  options: MissingOptions,
): Promise<Outpoint | undefined> {
  const { inputs, outputs } = readTransaction(record.raw, { txid: record.txid })
  const outputValues = outputs.map(({ satoshis }) => satoshis)
  const isPlaced = placement({ outputValues, output: vout })
  const inputValues: (number | undefined)[] = []
  // A transaction may spend thousands of outputs of another.
  const read = new Map<string, number[]>()
  for (const input of inputs) {
    let values = read.get(input.txid)
    if (values === undefined) {
      values = await outputValuesOf(input, options)
      read.set(input.txid, values)
    }
    const satoshis = values[input.vout]
    inputValues.push(satoshis)
    if (isPlaced(satoshis)) break
  }
  const predecessor = predecessorsOf({ inputValues, outputValues })[vout]
  const input = predecessor?.kind === 'input' ? inputs[predecessor.input] : undefined
  return input && { txid: input.txid, vout: input.vout }
}

async function outputValuesOf(
  outpoint: Outpoint,
  { store, source, limits }: MissingOptions,
): Promise<number[]> {
  const { txid } = outpoint
  const stored = await readOutline(txid, store.transactions)
  if (stored !== undefined) return stored.outputValues
  const record = await source.transaction(txid, limits)
  if (record === undefined) throw notKnown(outpoint)
  return readTransaction(record.raw, { txid }).outputs.map(({ satoshis }) => satoshis)
}

function notKnown({ txid, vout }: Outpoint): FollowError {
  return new FollowError(
    'NOT_KNOWN',
    `no chain source knows ${formatOutpoint({ txid, vout })}, which places an ordinal`,
  )
}
