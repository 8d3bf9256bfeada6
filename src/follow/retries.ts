/** The longest pause between two tries, in milliseconds. */
const MAX_PAUSE = 6 * 3_600_000
/** How many failures are remembered. Of more, the oldest are forgotten: the sweep comes by again. */
const MAX_FAILING = 10_000

interface Failure<Task> {
  task: Task
  /** Undefined if it is not an error: something may just be known later. */
  why: string | undefined
  tries: number
  /** When it is tried again, in milliseconds since 1970. */
  at: number
}

/** Tasks that failed, each to be tried again after pauses that double. */
export class Retries<Task> {
  private readonly failing = new Map<string, Failure<Task>>()

  /** @param firstPause In milliseconds; 0: they are always due. */
  constructor(private readonly firstPause: number) {}

  get keys(): Iterable<string> {
    return this.failing.keys()
  }

  /** Why each of them failed the last time. */
  get reasons(): string[] {
    return [...this.failing.values()].flatMap(({ why }) => why ?? [])
  }

  /** @param failure.isPaused Whether its pause grows; otherwise it is due at once. */
  failed(
    key: string,
    { task, why, isPaused }: Pick<Failure<Task>, 'task' | 'why'> & { isPaused: boolean },
  ): void {
    const tries = (this.failing.get(key)?.tries ?? 0) + 1
    this.failing.delete(key)
    const pause = isPaused ? Math.min(MAX_PAUSE, this.firstPause * 2 ** (tries - 1)) : 0
    this.failing.set(key, { task, why, tries, at: Date.now() + pause })
    if (this.failing.size <= MAX_FAILING) return
    const [oldest = ''] = this.failing.keys()
    this.failing.delete(oldest)
  }

  succeeded(key: string): void {
    this.failing.delete(key)
  }

  /** Whether it is too early to try a task again. */
  isWaiting(key: string): boolean {
    return (this.failing.get(key)?.at ?? 0) > Date.now()
  }

  /** The tasks whose pause is over. */
  due(): Task[] {
    const now = Date.now()
    return [...this.failing.values()].filter(({ at }) => at <= now).map(({ task }) => task)
  }
}
