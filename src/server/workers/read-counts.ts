import type { ClientRateLimitInfo, MemoryStore, Store } from 'express-rate-limit'
import type { Grant } from './messages.js'

/** The most requests that a reader is granted at once. */
const MOST_GRANTED = 32
/** Of what a client has left, a reader is granted this share, divided by the number of readers. */
const SHARE = 1 / 4
/** How long requests of an idle client stay granted, and how long a client is over its limit unasked, in milliseconds. */
const IDLE = 1000

/**
 * Counts the reads of each client for all readers, in the process that writes. Readers are granted a few at a time, fewer as the
 * limit comes closer, and return what a client does not use: the sum never exceeds the limit, and close to it each read is
 * granted alone.
 */
export class SharedCounts {
  private granting: Promise<unknown> = Promise.resolve()

  /** @param options.store Counts what this process answers itself as well. */
  constructor(private readonly options: { store: MemoryStore; rate: number; readers: number }) {}

  /** Grants a client further requests, or one over the limit. */
  grant(client: string): Promise<Grant> {
    const granted = this.granting.then(() => this.grantNext(client))
    this.granting = granted
    return granted
  }

  /** @param resetTime Of the window in which they were granted. */
  async takeBack(client: string, { count, resetTime }: Omit<Grant, 'upTo'>): Promise<void> {
    const { store } = this.options
    const window = await store.get(client)
    if (window?.resetTime?.getTime() !== resetTime) return
    for (let returned = 0; returned < count; returned++) await store.decrement(client)
  }

  private async grantNext(client: string): Promise<Grant> {
    const { store, rate, readers } = this.options
    const left = rate - ((await store.get(client))?.totalHits ?? 0)
    const count = Math.min(Math.max(Math.floor((left * SHARE) / readers), 1), MOST_GRANTED)
    const hits = await Promise.all(Array.from({ length: count }, () => store.increment(client)))
    const { totalHits = 1, resetTime } = hits.at(-1) ?? {}
    return { upTo: totalHits, count, resetTime: resetTime?.getTime() ?? 0 }
  }
}

interface Lease {
  /** The number of the next request in this window, and how many there are. */
  next: number
  left: number
  resetTime: Date
  /** Over the limit: until when the writer is not asked again. */
  overUntil: number
  /** Whether none was used since it was last looked. */
  isIdle: boolean
}

/** The reads of each client as a reader counts them: the writer grants them. */
export class LeasedCounts implements Store {
  readonly localKeys = false
  private readonly leases = new Map<string, Lease>()
  private readonly renewals = new Map<string, Promise<void>>()

  constructor(
    private readonly options: {
      rate: number
      ask: (client: string) => Promise<Grant>
      giveBack: (client: string, unused: Omit<Grant, 'upTo'>) => void
    },
  ) {
    setInterval(() => this.returnIdle(), IDLE).unref()
  }

  increment(client: string): ClientRateLimitInfo | Promise<ClientRateLimitInfo> {
    return this.taken(client) ?? this.takeGranted(client)
  }

  /** A request that was counted stays counted. */
  decrement(): void {}

  resetKey(client: string): void {
    this.leases.delete(client)
  }

  private taken(client: string): ClientRateLimitInfo | undefined {
    const lease = this.leases.get(client)
    const now = Date.now()
    if (lease === undefined || lease.resetTime.getTime() <= now) return undefined
    const { next: totalHits, resetTime } = lease
    if (lease.overUntil > now) return { totalHits, resetTime }
    if (lease.left === 0) return undefined
    lease.left--
    lease.next++
    lease.isIdle = false
    return { totalHits, resetTime }
  }

  private async takeGranted(client: string): Promise<ClientRateLimitInfo> {
    for (;;) {
      // Several requests of one client wait for one grant.
      const renewal = this.renewals.get(client) ?? this.renew(client)
      this.renewals.set(client, renewal)
      await renewal
      const taken = this.taken(client)
      if (taken !== undefined) return taken
    }
  }

  private async renew(client: string): Promise<void> {
    try {
      const { rate, ask } = this.options
      const { upTo, count, resetTime } = await ask(client)
      const overUntil = upTo > rate ? Date.now() + IDLE : 0
      this.leases.set(client, {
        ...{ next: upTo - count + 1, left: overUntil > 0 ? 0 : count, overUntil, isIdle: false },
        resetTime: new Date(resetTime),
      })
    } finally {
      this.renewals.delete(client)
    }
  }

  private returnIdle(): void {
    const now = Date.now()
    for (const [client, lease] of this.leases) {
      const { left: count, overUntil, isIdle } = lease
      const resetTime = lease.resetTime.getTime()
      if (overUntil > now && resetTime > now) continue
      if (isIdle && resetTime > now && count > 0 && overUntil === 0)
        this.options.giveBack(client, { count, resetTime })
      if (isIdle || resetTime <= now || overUntil > 0) this.leases.delete(client)
      else lease.isIdle = true
    }
  }
}
