/** How long a check keeps the thread before others have it, in milliseconds. */
const SLICE = 10

/** The checks of this thread that wait for it. */
const waiting: { used: number; resume(): void }[] = []

/**
 * What one check has of this thread. Long work is cut into slices; between them the event loop runs, so that a page or a
 * server stays responsive. Of all checks that wait, the one that has used least goes on: whoever brings a lot of work
 * delays those that bring little by one step at most.
 */
export class ThreadShare {
  private since = performance.now()

  /** @param usedBefore Milliseconds, up to the last slice; at first, what the check has to wait behind. */
  constructor(private usedBefore = 0) {}

  /** Begins a slice after waiting for something else, which is not counted. */
  resume(): void {
    this.since = performance.now()
  }

  /** Ends a slice before waiting for something else. */
  pause(): void {
    this.usedBefore = this.used
    this.resume()
  }

  /** How long the check has had the thread, in milliseconds. */
  get used(): number {
    return this.usedBefore + performance.now() - this.since
  }

  /** Whether the slice is over. */
  get isDue(): boolean {
    return performance.now() - this.since >= SLICE
  }

  /** Gives the thread up, and resolves in a later turn of the event loop, when it is this check's turn again. */
  async yield(): Promise<void> {
    this.pause()
    await new Promise<void>((resume) => {
      if (waiting.push({ used: this.usedBefore, resume }) === 1) inLaterTurn(resumeNext)
    })
    this.resume()
  }
}

/** One check a turn, so that whatever else the thread does comes in between. */
function resumeNext(): void {
  const least = Math.min(...waiting.map(({ used }) => used))
  const [next] = waiting.splice(
    waiting.findIndex(({ used }) => used === least),
    1,
  )
  if (waiting.length > 0) inLaterTurn(resumeNext)
  next?.resume()
}

/** As much of the host as is used here: the types of a page and those of Node differ. */
interface Host {
  setImmediate?: (run: () => void) => unknown
  MessageChannel: new () => {
    port1: { onmessage: (() => void) | null }
    port2: { postMessage(message: undefined): void }
  }
}
const host = globalThis as unknown as Host
let channel: InstanceType<Host['MessageChannel']> | undefined

/** Node has `setImmediate`. In a browser a message comes at once, and a timer only after four milliseconds. */
function inLaterTurn(run: () => void): void {
  if (host.setImmediate !== undefined) {
    host.setImmediate(run)
    return
  }
  channel ??= new host.MessageChannel()
  channel.port1.onmessage = run
  channel.port2.postMessage(undefined)
}
