import pLimit from 'p-limit'
import type { Logger } from 'pino'
import type { SightingRecord } from '../../../backend/src/graph/conflict-resolution.js'
import type { FactStore } from '../../../backend/src/read/fact-store.js'
import { unlessLate } from '../sources/background.js'
import type { ChainSources } from '../sources/chain-sources.js'
import { ChainSourceError } from '../sources/errors.js'
import { Retries } from '../sources/retries.js'

export interface SightingsOptions {
  store: { transactions: Pick<FactStore['transactions'], 'tiers'> }
  source: Pick<ChainSources, 'sightings' | 'canSight'>
  /** Records what the network said; resolves to whether anything changed. */
  record(records: SightingRecord[]): Promise<boolean>
  logger: Pick<Logger, 'warn'>
}

/** The number of transactions per question: WhatsOnChain takes 20. */
const BATCH = 20
/** The most transactions that wait. The sweep finds the rest: it lists unproven transactions with each block. */
const MAX_WAITING = 1000
/** The pause before an unknown transaction is asked about again, in milliseconds; it doubles each time. */
const FIRST_PAUSE = 60_000
/** How many conflicts are asked about at once, and the most milliseconds to wait for each. */
const CONFLICTS = 2
const CONFLICT_TIME = 5000

/**
 * Asks the chain sources whether the network has seen or rejected unproven transactions, and records the answers
 * (`docs/spec/overlay.md`, Sightings).
 *
 * The questions go through the clients that follow the chain, with one batch in the background and two conflicts at a time. So
 * whatever strangers submit, most of the rate of a source is left to the follower. Proven or seen transactions are not asked
 * about.
 */
export class Sightings {
  private readonly waiting = new Set<string>()
  private readonly retries = new Retries<string>(FIRST_PAUSE)
  private readonly conflicts = pLimit(CONFLICTS)
  private working: Promise<void> | undefined
  private isStopped = false

  constructor(private readonly options: SightingsOptions) {}

  /** Has transactions asked about in the background, except those that were asked about recently. */
  notice(txids: Iterable<string>): void {
    if (this.isStopped || !this.options.source.canSight) return
    for (const txid of txids)
      if (this.waiting.size < MAX_WAITING && !this.retries.isWaiting(txid)) this.waiting.add(txid)
    if (this.waiting.size === 0) return
    this.working ??= this.work().finally(() => {
      this.working = undefined
    })
  }

  /**
   * Asks about transactions that a caller waits for.
   *
   * @returns Whether something changed. False if no source can say, or none does in a few seconds; a late answer is recorded
   * all the same.
   */
  async ask(txids: readonly string[]): Promise<boolean> {
    const { conflicts } = this
    if (this.isStopped || !this.options.source.canSight) return false
    // Enough questions wait already; transactions in `waiting` are asked about in the background.
    if (conflicts.activeCount + conflicts.pendingCount >= 2 * CONFLICTS) return false
    const asked = conflicts(() => this.askNow(txids)).catch((error: unknown) => this.failed(error))
    return (await unlessLate(asked, CONFLICT_TIME)) ?? false
  }

  /** Records that the network has a transaction: a source showed it. */
  async seen(txid: string): Promise<void> {
    const tiers = this.options.store.transactions.tiers([txid])
    if ((tiers.get(txid) ?? 'unseen') === 'unseen') await this.record([{ txid, status: 'seen' }])
  }

  /** Resolves when the store is no longer in use. Pending questions have to end first. */
  async stop(): Promise<void> {
    this.isStopped = true
    this.waiting.clear()
    await this.working
  }

  private async work(): Promise<void> {
    for (let batch = this.nextBatch(); batch.length > 0; batch = this.nextBatch()) {
      try {
        await this.askNow(this.unseen(batch))
      } catch (error) {
        this.failed(error)
        // The rest comes again with the next block.
        this.waiting.clear()
      }
    }
  }

  private nextBatch(): string[] {
    const batch = [...this.waiting].slice(0, BATCH)
    for (const txid of batch) this.waiting.delete(txid)
    return batch
  }

  private unseen(txids: string[]): string[] {
    const tiers = this.options.store.transactions.tiers(txids)
    return txids.filter((txid) => tiers.get(txid) === 'unseen')
  }

  /** @returns Whether something changed. @throws ChainSourceError, errors of the store */
  private async askNow(txids: readonly string[]): Promise<boolean> {
    if (txids.length === 0) return false
    const said = await this.options.source.sightings(txids)
    for (const txid of txids) {
      if (said.get(txid) === 'seen') this.retries.succeeded(txid)
      else this.retries.failed(txid, { task: txid, why: undefined, isPaused: true })
    }
    return await this.record([...said].map(([txid, status]) => ({ txid, status })))
  }

  private async record(records: SightingRecord[]): Promise<boolean> {
    if (records.length === 0 || this.isStopped) return false
    return await this.options.record(records)
  }

  private failed(error: unknown): false {
    if (!(error instanceof ChainSourceError) && !this.isStopped)
      this.options.logger.warn({ err: error }, 'could not record what the network said about transactions')
    return false
  }
}
