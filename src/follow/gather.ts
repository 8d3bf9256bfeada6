import type { GraphStore, TransactionSource } from '../../backend/src/graph/graph-store.js'
import type { TransactionRecord } from '../../backend/src/graph/records.js'
import { assembleBeef } from '../../backend/src/graph/write-beef.js'
import { placement } from '../../backend/src/protocol/ordinal-flow.js'
import { readTransaction, type TransactionView } from '../../backend/src/protocol/transaction.js'
import { type BlockPosition, positionOf } from './block-position.js'
import type { ChainSource } from './chain-source.js'
import { CrawlError } from './crawl-error.js'

/** What a submission may have. */
export interface GatherLimits {
  maxTransactions: number
  maxBytes: number
}

export interface GatherOptions {
  store: Pick<GraphStore, 'transactions' | 'admissions'>
  source: ChainSource
  limits: GatherLimits
  /** The txids of what the source was found not to have in a block: of those, what is held is enough. Added to. */
  unproven: Set<string>
}

/** A transaction with all that it takes to admit it. */
export interface Gathered {
  /** The transaction, with what places its ordinals, and where it is not proven, with its ancestors down to proven ones. */
  beef: Uint8Array
  position: BlockPosition
  /**
   * The transactions that left the coins of 1 satoshi which it spends and no topic holds here. One may be a name that is
   * on its way and was not followed so far yet; then the transaction has to wait, or the name is lost from sight.
   */
  doubtful: BlockPosition[]
  /** What places its ordinals, and the source does not know. */
  unknown: string[]
}

/**
 * Puts together what a topic needs to know of a transaction, as a sync with a peer would: of the inputs, as many as place the
 * last output that may be an ordinal (BRC-159).
 *
 * @throws CrawlError `TOO_LARGE` where that is more than a submission may have; what the source throws.
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
  if (beef === undefined) throw new RangeError(`${subject.txid} is not in what was gathered for it`)
  const ancestors = subject.proof === undefined ? reader.unproven : 0
  return { beef, position: positionOf(subject, { ancestors }), doubtful, unknown: [...unknown] }
}

/** Of a coin in no block it is not known what it comes before. */
const NEVER_BEFORE = Number.POSITIVE_INFINITY

function outputOf(
  { txid, raw }: TransactionRecord,
  vout: number,
): TransactionView['outputs'][number] | undefined {
  return readTransaction(raw, { txid }).outputs[vout]
}

/**
 * What is held here as proven, and else what the source has: a proof may have come since. Each is asked for once, and there
 * is an end to how many.
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

  /** How many are in no block. */
  get unproven(): number {
    return [...this.found.values()].filter((record) => record !== undefined && record.proof === undefined)
      .length
  }

  async get(txid: string): Promise<TransactionRecord | undefined> {
    if (this.found.has(txid)) return this.found.get(txid)
    const { limits } = this.options
    const record = await knownOrSourced(txid, this.options)
    this.bytes += record?.raw.length ?? 0
    if (this.found.size >= limits.maxTransactions || this.bytes > limits.maxBytes)
      throw new CrawlError(
        'TOO_LARGE',
        `what ${this.subject.txid} is built on is more than a submission may have`,
      )
    this.found.set(txid, record)
    return record
  }
}

/** A transaction as it is held here where that is proven, else as the source has it, and else as it is held here. */
export async function knownOrSourced(
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
