import type { Logger } from 'pino'
import { monotonic } from '../../../backend/src/protocol/monotonic.js'
import { type ChainParts, type ChainStatus, chainStatus } from './chain-status.js'

/** How often a host that is catching up logs its progress, in milliseconds. */
const INTERVAL = 60_000

/** Logs the progress of catching up with the chain: a line a minute, and one when it is done. */
export class CatchUpLog {
  private timer: NodeJS.Timeout | undefined
  private isCatchingUp = true
  private last = { at: monotonic(), transactions: 0, requests: 0 }

  constructor(private readonly options: { parts: ChainParts; logger: Logger }) {}

  start(): void {
    this.timer = setInterval(() => this.log(), INTERVAL).unref()
  }

  stop(): void {
    clearInterval(this.timer)
  }

  private log(): void {
    const status = chainStatus(this.options.parts)
    if (status.follow === undefined) return
    const wasCatchingUp = this.isCatchingUp
    this.isCatchingUp = status.follow.state === 'catching up'
    const rates = this.measure(status)
    const { mints, transfers, sweep, height, failures } = status.follow
    const { height: chainHeight, lag } = status
    const reached = { mints, transfers, height, chainHeight, lag, requests: this.last.requests, failures }
    if (this.isCatchingUp)
      this.options.logger.info({ ...reached, ...rates, sweep }, 'catching up with the chain')
    else if (wasCatchingUp) this.options.logger.info(reached, 'caught up with the chain')
  }

  private measure({ follow, sources = [] }: ChainStatus): object {
    const { last } = this
    const at = monotonic()
    const transactions = (follow?.mints ?? 0) + (follow?.transfers ?? 0)
    const requests = sources.reduce((sum, source) => sum + source.requests, 0)
    this.last = { at, transactions, requests }
    const perSecond = (count: number): number => Math.round((count * 10_000) / (at - last.at)) / 10
    return {
      transactionsPerSecond: perSecond(transactions - last.transactions),
      requestsPerSecond: perSecond(requests - last.requests),
    }
  }
}
