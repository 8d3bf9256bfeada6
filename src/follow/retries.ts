/** The longest pause between two tries, in milliseconds. */
const MAX_PAUSE = 6 * 3_600_000
/** How many are remembered. Of more, the oldest are forgotten: the sweep comes by again. */
const MAX_RETRIES = 10_000

interface Retry<Task> {
  task: Task
  tries: number
  /** When it is tried again, in milliseconds since 1970. */
  at: number
}

/** Tasks that failed, each to be tried again after pauses that double. */
export class Retries<Task> {
  private readonly waiting = new Map<string, Retry<Task>>()

  /** @param firstPause In milliseconds. */
  constructor(private readonly firstPause: number) {}

  failed(key: string, task: Task): void {
    const tries = (this.waiting.get(key)?.tries ?? 0) + 1
    this.waiting.delete(key)
    const pause = Math.min(MAX_PAUSE, this.firstPause * 2 ** (tries - 1))
    this.waiting.set(key, { task, tries, at: Date.now() + pause })
    if (this.waiting.size <= MAX_RETRIES) return
    const [oldest = ''] = this.waiting.keys()
    this.waiting.delete(oldest)
  }

  succeeded(key: string): void {
    this.waiting.delete(key)
  }

  /** Whether it is too early to try a task again. */
  isWaiting(key: string): boolean {
    return (this.waiting.get(key)?.at ?? 0) > Date.now()
  }

  /** The tasks whose pause is over. */
  due(): Task[] {
    const now = Date.now()
    return [...this.waiting.values()].filter(({ at }) => at <= now).map(({ task }) => task)
  }
}
