import type { ClientRateLimitInfo, Options, Store } from 'express-rate-limit'
import { monotonic } from '../../../backend/src/protocol/monotonic.js'

interface Client {
  totalHits: number
  /** When its window ends, on the monotonic clock, in the type that `express-rate-limit` passes on. */
  resetTime: Date
}

/**
 * The requests of each client in its current window. The store of `express-rate-limit` reads the time of day: when that is set back,
 * a window lasts as much longer.
 */
export class RequestCounts implements Store {
  readonly localKeys = true
  private window = 0
  /** A client moves to `current` with its first request in a window, so that the others are forgotten at once. */
  private current = new Map<string, Client>()
  private previous = new Map<string, Client>()
  private rotated = monotonic()

  init({ windowMs }: Pick<Options, 'windowMs'>): void {
    this.window = windowMs
  }

  increment(key: string): ClientRateLimitInfo {
    const now = monotonic()
    if (now - this.rotated > this.window) {
      this.previous = now - this.rotated > 2 * this.window ? new Map() : this.current
      this.current = new Map()
      this.rotated = now
    }
    const known = this.current.get(key) ?? this.previous.get(key)
    const isOver = known === undefined || known.resetTime.getTime() <= now
    const client = isOver ? { totalHits: 0, resetTime: new Date(now + this.window) } : known
    client.totalHits++
    this.current.set(key, client)
    return client
  }

  decrement(key: string): void {
    const client = this.current.get(key)
    if (client !== undefined && client.totalHits > 0) client.totalHits--
  }

  resetKey(key: string): void {
    this.current.delete(key)
    this.previous.delete(key)
  }
}
