import { monotonic } from '../../backend/src/protocol/monotonic.js'
import type { Slice } from '../chain/headers/header-chain.js'

/** How long a check may keep the thread before others run, in milliseconds. */
const SLICE = 10

/** The checks that wait for this thread. */
const waiting: { used: number; resume(): void }[] = []

/**
 * One check's share of this thread. Long work is cut into slices, and the event loop runs between them, so that a page or
 * a server stays responsive. Of the waiting checks, the one that has used the least time goes next: a check with a lot of
 * work delays the small ones by one step at most.
 */
export class ThreadShare implements Slice {
  private since = monotonic()

  /** @param usedBefore Milliseconds to count as used already: checks that have used less go first. */
  constructor(private usedBefore = 0) {}

  /** Starts a slice after waiting for something else, which does not count. */
  resume(): void {
    this.since = monotonic()
  }

  /** Ends a slice before waiting for something else. */
  pause(): void {
    this.usedBefore = this.used
    this.resume()
  }

  /** How long the check has used the thread, in milliseconds. */
  get used(): number {
    return this.usedBefore + monotonic() - this.since
  }

  get isOver(): boolean {
    return monotonic() - this.since >= SLICE
  }

  async yieldIfOver(): Promise<void> {
    if (this.isOver) await this.yield()
  }

  /** Gives up the thread; resolves in a later task of the event loop, once no waiting check has used less. */
  async yield(): Promise<void> {
    this.pause()
    await new Promise<void>((resume) => {
      if (waiting.push({ used: this.usedBefore, resume }) === 1) runLater(resumeNext)
    })
    this.resume()
  }
}

/** One check per task, so that the thread's other work runs in between. */
function resumeNext(): void {
  const least = Math.min(...waiting.map(({ used }) => used))
  const [next] = waiting.splice(
    waiting.findIndex(({ used }) => used === least),
    1,
  )
  if (waiting.length > 0) runLater(resumeNext)
  next?.resume()
}

/** The part of the host that is used here: the types of browsers and of Node differ. */
interface Host {
  setImmediate?: (run: () => void) => unknown
  MessageChannel: new () => {
    port1: { onmessage: (() => void) | null }
    port2: { postMessage(message: undefined): void }
  }
}
const host = globalThis as unknown as Host
let channel: InstanceType<Host['MessageChannel']> | undefined

/** Node has `setImmediate`. A browser delivers a message at once, but delays nested timers by four milliseconds. */
function runLater(run: () => void): void {
  if (host.setImmediate !== undefined) {
    host.setImmediate(run)
    return
  }
  channel ??= new host.MessageChannel()
  channel.port1.onmessage = run
  channel.port2.postMessage(undefined)
}
