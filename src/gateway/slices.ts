/** How long one piece of work may go on before others have their turn, in milliseconds. */
const SLICE = 10

const waiting: (() => void)[] = []

/**
 * Waits for a later turn of the event loop. Of all long work of this thread that waits so, one goes on in each turn, first
 * come first served: however much of it there is, whoever asks for something short waits for one slice a turn.
 */
export async function yieldToEventLoop(): Promise<void> {
  await new Promise<void>((resume) => {
    if (waiting.push(resume) === 1) setImmediate(resumeNext)
  })
}

function resumeNext(): void {
  const resume = waiting.shift()
  if (waiting.length > 0) setImmediate(resumeNext)
  resume?.()
}

/** Cuts long work within this thread into slices, between which others are answered. */
export class Slices {
  private since = performance.now()

  get isOver(): boolean {
    return performance.now() - this.since >= SLICE
  }

  /** Lets others have their turn where the slice is over. */
  async rest(): Promise<void> {
    if (!this.isOver) return
    await yieldToEventLoop()
    this.since = performance.now()
  }
}
