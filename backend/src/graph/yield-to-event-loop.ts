/** How long one piece of work may go on before others have their turn, in milliseconds. */
const SLICE = 10

/** Reading waits in one line and submitting in another, so that no submission waits behind a line of readers. */
const lines: Record<Line, (() => void)[]> = { reading: [], submitting: [] }
type Line = 'reading' | 'submitting'

/**
 * Waits for a later turn of the event loop. Of all long work of this thread that waits so, one in each line goes on in each
 * turn, first come first served: however much of it there is, a short request waits for two slices a turn at the most.
 */
export async function yieldToEventLoop(line: Line = 'reading'): Promise<void> {
  const waiting = lines[line]
  await new Promise<void>((resume) => {
    if (waiting.push(resume) === 1) setImmediate(resumeNext, waiting)
  })
}

function resumeNext(waiting: (() => void)[]): void {
  const resume = waiting.shift()
  if (waiting.length > 0) setImmediate(resumeNext, waiting)
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
