import { setTimeout } from 'node:timers/promises'
import { Mutex } from 'async-mutex'
import type { Logger } from 'pino'
import type { HostStore } from '../../../backend/src/graph/host-store.js'
import type { Block } from '../../../backend/src/graph/records.js'
import type { Node } from '../node.js'
import type { OverlayEngine } from '../submission/overlay-engine.js'
import { ChainTrackerError } from '../submission/submission-errors.js'
import type { HeadersSource } from './chain-tracker.js'
import type { ProofVerifier } from './proof-verifier.js'

/** Where the store keeps up to which tip its proofs were checked. */
const CHECKED_TIP = 'checked_tip'

/** When a first round that failed is tried again where none is to follow, in milliseconds: the later ones start from its tip. */
const AGAIN = 60_000

/** What a round found. Heights are of blocks. */
export interface Round {
  tip: number
  /** The lowest height that it looked at. */
  from: number
  /** Blocks that kept proofs lead to, and that the tracker was asked about. */
  blocks: number
  /** Transactions that lost their proof. */
  disproved: number
}

export interface ReorgMonitorOptions {
  headers: HeadersSource
  proofs: ProofVerifier
  graph: Pick<HostStore, 'blocks' | 'settings'>
  engine: Pick<OverlayEngine, 'exclusively'>
  /** How many of the last blocks are asked about again. */
  reorgDepth: number
  /** Milliseconds from one round to the next; 0: none after the first that went well, but those that somebody asks for. */
  pollInterval: number
  logger: Logger
}

/**
 * Watches whether the chain still has the blocks that the kept proofs lead to (`docs/proofs.md`): in rounds, the first
 * at once, so that a reorg is found that came while the node was down.
 */
export class ReorgMonitor {
  private readonly rounds = new Mutex()
  private readonly stopping = new AbortController()
  private polling: Promise<void> | undefined

  constructor(private readonly options: ReorgMonitorOptions) {}

  start(): void {
    this.polling = this.poll()
  }

  /** Ends what is under way, and waits until the store is left alone. */
  async stop(): Promise<void> {
    this.stopping.abort(new ChainTrackerError('the node is stopping'))
    await this.polling
    await this.rounds.waitForUnlock()
  }

  /**
   * One round; where one is under way, after that.
   *
   * @param from A height to start at, where that is below the usual one: as far below the tip as a reorg may reach.
   * @throws ChainTrackerError where the tracker does not answer, or lies too low: what was found until then is done.
   */
  async round(from?: number): Promise<Round> {
    return await this.rounds.runExclusive(() => this.check(from))
  }

  private async poll(): Promise<void> {
    const { pollInterval, logger } = this.options
    const { signal } = this.stopping
    while (!signal.aborted) {
      try {
        await this.round()
        if (pollInterval === 0) return
      } catch (err) {
        if (signal.aborted) return
        const level = err instanceof ChainTrackerError ? 'warn' : 'error'
        logger[level](
          { err },
          'failed to check stored proofs; the next round will check what this one missed',
        )
      }
      // Aborted, it is done; the loop sees why.
      await setTimeout(pollInterval || AGAIN, undefined, { signal, ref: false }).catch(() => {})
    }
  }

  private async check(asked: number | undefined): Promise<Round> {
    const { headers, graph, reorgDepth } = this.options
    const tip = await this.unlessStopped(() => headers.currentHeight())
    const last = await this.lastTip(tip)
    if (asked === undefined && tip < last - reorgDepth)
      throw new ChainTrackerError(`the chain tracker is at ${tip}, too far below its earlier ${last}`)
    const usual = lowest(Math.min(tip, last), reorgDepth)
    const found = { tip, from: Math.min(asked ?? usual, usual), blocks: 0, disproved: 0 }
    let settled = true
    for (let to = tip; to >= found.from; ) {
      const blocks = (await graph.blocks.from({ from: found.from })).filter(({ height }) => height <= to)
      to = found.from - 1
      for (const block of blocks) {
        found.blocks++
        const verdict = await this.unlessStopped(() => headers.verdict(block))
        if (verdict === 'unknown') settled = false
        if (verdict !== 'no') continue
        found.disproved += await this.takeBack(block)
        // Where the chain parted is not known: as far below a refusal as below the tip, there may be another one.
        found.from = Math.min(found.from, lowest(block.height - 1, reorgDepth))
      }
    }
    if (settled) await graph.settings.set(CHECKED_TIP, String(tip))
    return found
  }

  /** In the turn of the engine the tracker is asked once more, so that no proof that came again meanwhile is lost. */
  private async takeBack(block: Block): Promise<number> {
    const { headers, engine, proofs } = this.options
    return await engine.exclusively(async () => {
      const verdict = await this.unlessStopped(() => headers.verdict(block))
      return verdict === 'no' ? await proofs.takeBack(block) : 0
    })
  }

  /** The tip of the last round that left nothing open. Before the first, what it is now. */
  private async lastTip(tip: number): Promise<number> {
    const { graph } = this.options
    const kept = await graph.settings.get(CHECKED_TIP)
    if (kept !== undefined) return Number(kept)
    await graph.settings.set(CHECKED_TIP, String(tip))
    return tip
  }

  /** Waits for no tracker once the node stops. */
  private async unlessStopped<Answer>(question: () => Promise<Answer>): Promise<Answer> {
    const { signal } = this.stopping
    signal.throwIfAborted()
    return await new Promise((resolve, reject) => {
      const stop = (): void => reject(signal.reason)
      signal.addEventListener('abort', stop, { once: true })
      void question()
        .then(resolve, reject)
        .finally(() => signal.removeEventListener('abort', stop))
    })
  }
}

/** The watch over the proofs of a node; undefined where they are not checked. */
export function openReorgMonitor(node: Node, logger: Logger): ReorgMonitor | undefined {
  const { config, graph, overlay } = node
  const { engine, proofs } = overlay
  const { reorgDepth, headersPollInterval: pollInterval } = config
  const { headers } = proofs
  return headers && new ReorgMonitor({ headers, proofs, graph, engine, reorgDepth, pollInterval, logger })
}

/** The lowest of so many blocks, of which the highest stands at `height`. */
function lowest(height: number, blocks: number): number {
  return Math.max(0, height - blocks + 1)
}
