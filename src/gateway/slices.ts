import { setImmediate } from 'node:timers/promises'

/** How long one piece of work may go on before others have their turn, in milliseconds. */
const SLICE = 10

/** Cuts long work within this thread into slices, between which others are answered. */
export class Slices {
  private since = performance.now()

  get isOver(): boolean {
    return performance.now() - this.since >= SLICE
  }

  /** Lets others have their turn where the slice is over. */
  async rest(): Promise<void> {
    if (!this.isOver) return
    await setImmediate()
    this.since = performance.now()
  }
}
