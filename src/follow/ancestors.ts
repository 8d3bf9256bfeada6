import type { GraphStore, TransactionSource } from '../../backend/src/graph/graph-store.js'
import type { TransactionRecord } from '../../backend/src/graph/records.js'
import { assembleBeef } from '../../backend/src/graph/write-beef.js'
import { BeefError } from '../../backend/src/protocol/beef.js'
import { readBump } from '../../backend/src/protocol/bump.js'
import { placement } from '../../backend/src/protocol/ordinal-flow.js'
import { readTransaction, type TransactionView } from '../../backend/src/protocol/transaction.js'
import type { ChainSource } from './chain-source.js'
import { CrawlError } from './errors.js'

/** The position of a transaction in the chain. Its parents are before it, in an earlier block or earlier in the same one. */
export interface BlockPosition {
  height: number
  index: number
}

/** The height of an unmined transaction: after all that are mined. */
const UNMINED = Number.POSITIVE_INFINITY

/**
 * @param options.ancestors How many unproven ancestors an unproven transaction has: more than any of them, so it comes after
 * them.
 */
export function positionOf(
  { txid, proof }: TransactionRecord,
  { ancestors }: { ancestors: number },
): BlockPosition {
  if (proof === undefined) return { height: UNMINED, index: ancestors }
  const [lowest] = readBump(proof.merklePath, (message) => new BeefError(message)).levels
  for (const [index, { isTxid }] of lowest ?? []) if (isTxid) return { height: proof.height, index }
  throw new BeefError(`the merkle path of ${txid} does not contain it`)
}

export function isBefore(one: BlockPosition, other: BlockPosition): boolean {
  return one.height === other.height ? one.index < other.index : one.height < other.height
}

/** The limits of a submission. */
export interface GatherLimits {
  maxTransactions: number
  maxBytes: number
}

export interface GatherOptions {
  store: Pick<GraphStore, 'transactions' | 'admissions'>
  source: ChainSource
  limits: GatherLimits
  /** Txids that the source has no proof for, so the stored transaction is good enough. Added to. */
  unproven: Set<string>
}

/** A transaction with everything that is needed to admit it. */
export interface Gathered {
  /** The transaction with the parents that place its ordinals; if it is unproven, with its ancestors down to proven ones. */
  beef: Uint8Array
  position: BlockPosition
  /**
   * The transactions of the 1-sat inputs that no topic has admitted. One may be a name that the crawl has not followed so far
   * yet; then the transaction has to wait, or the name is lost.
   */
  doubtful: BlockPosition[]
  /** Parents that place its ordinals, and that the source does not know. */
  unknown: string[]
}

/**
 * Gathers the ancestors that a topic needs to admit a transaction, as a sync with a peer does: of the inputs, as many as place
 * the last output that may be an ordinal (BRC-159).
 *
 * @throws CrawlError `TOO_LARGE` if they exceed the limits of a submission; errors of the source.
 */
export async function gather(subject: TransactionRecord, options: GatherOptions): Promise<Gathered> {
  const { store } = options
  const reader = new GatheringReader(subject, options)
  const { inputs, outputs } = readTransaction(subject.raw, { txid: subject.txid })
  const placing: string[] = []
  const unknown = new Set<string>()
  const doubtful: BlockPosition[] = []
  const last = outputs.findLastIndex(({ satoshis }) => satoshis === 1)
  const isPlaced = placement({ outputValues: outputs.map(({ satoshis }) => satoshis), output: last })
  for (const { txid, vout } of last === -1 ? [] : inputs) {
    const record = await reader.get(txid)
    const satoshis = record && outputOf(record, vout)?.satoshis
    if (record === undefined) unknown.add(txid)
    else placing.push(txid)
    if (record !== undefined && satoshis === 1 && (await store.admissions.of({ txid, vout })).length === 0)
      doubtful.push(positionOf(record, { ancestors: NEVER_BEFORE }))
    if (isPlaced(satoshis)) break
  }
  const beef = await assembleBeef([...placing, subject.txid], reader)
  if (beef === undefined) throw new RangeError(`${subject.txid} is missing from its own BEEF`)
  const ancestors = subject.proof === undefined ? reader.unproven : 0
  return { beef, position: positionOf(subject, { ancestors }), doubtful, unknown: [...unknown] }
}

/** An unmined coin comes before nothing that is known. */
const NEVER_BEFORE = Number.POSITIVE_INFINITY

function outputOf(
  { txid, raw }: TransactionRecord,
  vout: number,
): TransactionView['outputs'][number] | undefined {
  return readTransaction(raw, { txid }).outputs[vout]
}

/**
 * Reads proven transactions from the store, and others from the source, as a proof may exist by now. Each is read once, up to
 * the limits.
 */
class GatheringReader implements TransactionSource {
  private readonly found = new Map<string, TransactionRecord | undefined>()
  private bytes = 0

  constructor(
    private readonly subject: TransactionRecord,
    private readonly options: GatherOptions,
  ) {
    this.found.set(subject.txid, subject)
  }

  /** How many of those that were read are unmined. */
  get unproven(): number {
    return [...this.found.values()].filter((record) => record !== undefined && record.proof === undefined)
      .length
  }

  async get(txid: string): Promise<TransactionRecord | undefined> {
    if (this.found.has(txid)) return this.found.get(txid)
    const { limits } = this.options
    const record = await storedOrSourced(txid, this.options)
    this.bytes += record?.raw.length ?? 0
    if (this.found.size >= limits.maxTransactions || this.bytes > limits.maxBytes)
      throw new CrawlError(
        'TOO_LARGE',
        `the ancestors of ${this.subject.txid} exceed the limits of a submission`,
      )
    this.found.set(txid, record)
    return record
  }
}

/** A transaction from the store if it is proven there, otherwise from the source, otherwise unproven from the store. */
export async function storedOrSourced(
  txid: string,
  {
    store,
    source,
    limits,
    unproven,
  }: Omit<GatherOptions, 'store'> & { store: Pick<GraphStore, 'transactions'> },
): Promise<TransactionRecord | undefined> {
  const held = await store.transactions.get(txid)
  if (held !== undefined && (held.proof !== undefined || unproven.has(txid))) return held
  const sourced = await source.transaction(txid, limits)
  if (sourced !== undefined && sourced.proof === undefined) unproven.add(txid)
  return sourced ?? held
}
