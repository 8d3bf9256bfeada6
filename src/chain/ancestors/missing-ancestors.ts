import { LRUCache } from 'lru-cache'
import type { TransactionRecord } from '../../../backend/src/graph/records.js'
import type { ChainSource } from '../sources/chain-source.js'
import { FollowError } from '../sources/errors.js'
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
    const known = this.asked.get(txid)
    if (known !== undefined && now() - known.at < forget) return known.answer
    const answer = this.source.transaction(txid, limits)
    this.asked.set(txid, { at: now(), answer })
    // What is found will be stored, and is not kept in memory.
    const drop = (): boolean => this.asked.delete(txid)
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
