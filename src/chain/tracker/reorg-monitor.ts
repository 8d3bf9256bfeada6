import { Mutex } from 'async-mutex'
import type { Logger } from 'pino'
import { ChainTrackerError } from '../../../backend/src/graph/errors.js'
import type { Block } from '../../../backend/src/graph/records.js'
import type { FactStore } from '../../../backend/src/read/fact-store.js'
import { unlessAborted } from '../../client/bounded-fetch.js'
import { BackgroundJob } from '../sources/background.js'
import type { BlockHeaders, ProofVerifier } from './chain-tracker.js'

/** The setting that stores the tip up to which proofs were checked; each gateway has its own (`OWN_STATE`). */
const CHECKED_TIP = 'checked_tip'

/** The pause before a failed first round is retried without polling, in milliseconds: later rounds start from its tip. */
const RETRY_DELAY = 60_000

export interface Round {
  tip: number
  /** The lowest height that was checked. */
  from: number
  /** Blocks of stored proofs that the tracker was asked about. */
  blocks: number
  /** Transactions that lost their proof. */
  disproved: number
}

export interface ReorgMonitorOptions {
  headers: BlockHeaders
  proofs: ProofVerifier
  graph: Pick<FactStore, 'blocks' | 'settings'>
  runLocked: <Result>(write: () => Promise<Result>) => Promise<Result>
  /** How many of the last blocks are checked again. */
  reorgDepth: number
  /** Milliseconds between rounds; 0: after the first successful one, only on request. */
  pollInterval: number
  logger: Logger
}

/**
 * Checks in rounds whether the chain still has the blocks of stored proofs (`docs/spec/overlay.md`); the first time immediately,
 * to find a reorg that happened while the node was down.
 */
export class ReorgMonitor {
  private readonly rounds = new Mutex()
  private readonly polling = new BackgroundJob(() => this.poll())
  /** Whether the last round failed: then a new tip starts the next one. */
  private hasFailed = false
  /** The lowest height of reported reorganisations that no round has started from yet. */
  private forkedAt: number | undefined
  /** The lowest height of reorganisations that is not in the store yet. */
  private unsaved: number | undefined

  constructor(private readonly options: ReorgMonitorOptions) {}

  start(): void {
    this.options.headers.onTip(({ forkedAt }) => {
      if (forkedAt !== undefined) void this.checkFork(forkedAt)
      else if (this.hasFailed) this.polling.wake()
    })
    this.polling.start()
  }

  /** Stops; resolves when the store is no longer in use. */
  async stop(): Promise<void> {
    await this.polling.stop(new ChainTrackerError('the node is stopping'))
    await this.rounds.waitForUnlock()
  }

  /**
   * Runs a round, after the current one if there is one.
   *
   * @param from A height to start at, if below the usual one, which is as far below the tip as a reorg may reach.
   * @throws ChainTrackerError if the tracker does not answer or is too far behind; findings up to then are applied.
   */
  async round(from?: number): Promise<Round> {
    await this.options.headers.refresh?.()
    return await this.rounds.runExclusive(() => this.check(from))
  }

  /** Checks proofs from the height of a reorganisation on. Reports that come during a round share the next one. */
  private async checkFork(height: number): Promise<void> {
    const isWaiting = this.forkedAt !== undefined
    this.forkedAt = Math.min(height, this.forkedAt ?? height)
    if (isWaiting) return
    try {
      await this.rounds.runExclusive(() => {
        const from = this.forkedAt ?? height
        this.forkedAt = undefined
        this.unsaved = Math.min(from, this.unsaved ?? from)
        return this.check(from)
      })
    } catch (error) {
      this.failed(error)
    }
  }

  /** The next round covers what a failed one left out. */
  private failed(err: unknown): void {
    if (this.polling.signal.aborted) return
    this.hasFailed = true
    const level = err instanceof ChainTrackerError ? 'warn' : 'error'
    this.options.logger[level](
      { err },
      'could not check the stored proofs; the next round covers what this one left out',
    )
  }

  private async poll(): Promise<number | undefined> {
    const { pollInterval } = this.options
    try {
      this.hasFailed = false
      await this.rounds.runExclusive(() => this.check(undefined))
      return pollInterval || undefined
    } catch (error) {
      this.failed(error)
      return pollInterval || RETRY_DELAY
    }
  }

  private async check(asked: number | undefined): Promise<Round> {
    const { headers, graph, reorgDepth } = this.options
    await this.saveFork()
    const tip = await this.unlessStopped(() => headers.currentHeight())
    const last = await this.lastTip(tip)
    if (asked === undefined && tip < last - reorgDepth)
      throw new ChainTrackerError(`the chain tracker is at ${tip} and was at ${last}: it is too far behind`)
    const usual = lowest(Math.min(tip, last), reorgDepth)
    const found = { tip, from: Math.min(asked ?? usual, usual), blocks: 0, disproved: 0 }
    let isConclusive = true
    for (let to = tip; to >= found.from; ) {
      const blocks = graph.blocks.from({ from: found.from }).filter(({ height }) => height <= to)
      to = found.from - 1
      for (const block of blocks) {
        found.blocks++
        const verdict = await this.unlessStopped(() => headers.verdict(block))
        if (verdict === 'unknown') isConclusive = false
        if (verdict !== 'no') continue
        found.disproved += await this.disprove(block)
        // It is unknown where the branches part: below a refused block there may be as many more as below the tip.
        found.from = Math.min(found.from, lowest(block.height - 1, reorgDepth))
      }
    }
    if (isConclusive) await graph.settings.set(CHECKED_TIP, String(tip))
    return found
  }

  /** Stores the start of a reorganisation, so that rounds begin there until one of them succeeds, even after a restart. */
  private async saveFork(): Promise<void> {
    const { graph, reorgDepth } = this.options
    if (this.unsaved === undefined) return
    const tip = this.unsaved + reorgDepth - 1
    const stored = await graph.settings.get(CHECKED_TIP)
    if (stored === undefined || Number(stored) > tip) await graph.settings.set(CHECKED_TIP, String(tip))
    this.unsaved = undefined
  }

  /** Asks the tracker again under the write lock, so that a proof that came again meanwhile is not removed. */
  private async disprove(block: Block): Promise<number> {
    const { headers, runLocked, proofs } = this.options
    return await runLocked(async () => {
      const verdict = await this.unlessStopped(() => headers.verdict(block))
      return verdict === 'no' ? await proofs.disprove(block) : 0
    })
  }

  /** The tip of the last conclusive round; before the first one, the current tip. */
  private async lastTip(tip: number): Promise<number> {
    const { graph } = this.options
    const stored = await graph.settings.get(CHECKED_TIP)
    if (stored !== undefined) return Number(stored)
    await graph.settings.set(CHECKED_TIP, String(tip))
    return tip
  }

  /** Asks the tracker; stops waiting when the node stops. */
  private async unlessStopped<Answer>(question: () => Promise<Answer>): Promise<Answer> {
    const { signal } = this.polling
    signal.throwIfAborted()
    return await unlessAborted(question(), signal)
  }
}

function lowest(height: number, blocks: number): number {
  return Math.max(0, height - blocks + 1)
}
