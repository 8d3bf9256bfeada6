import { monotonic } from '../../../backend/src/protocol/monotonic.js'

/** The longest pause between two tries, in milliseconds. */
const MAX_PAUSE = 6 * 3_600_000
/** After more tries than this, a new block does not cut the pause short. */
const FEW = 6
/** The most failures that are remembered. Beyond that, the oldest are forgotten; the next sweep finds them. */
export const MAX_FAILING = 10_000

interface Failure<Task> {
  task: Task
  /** Undefined if it is not an error: an answer may exist later. */
  why: string | undefined
  tries: number
  /** When to retry, on the monotonic clock; Infinity: in the next round. */
  at: number
  /** Whether a new round made it due early. */
  isDue: boolean
}

/** Tasks that failed, each retried after pauses that double. */
export class Retries<Task> {
  private readonly failing = new Map<string, Failure<Task>>()

  /** @param firstPause In milliseconds; 0: tasks are always due. */
  constructor(private readonly firstPause: number) {}

  get keys(): Iterable<string> {
    return this.failing.keys()
  }

  /** Why each task failed the last time. */
  get reasons(): string[] {
    return [...this.failing.values()].flatMap(({ why }) => why ?? [])
  }

  /** How many tasks failed with an error and are retried after a pause. */
  get paused(): number {
    return [...this.failing.values()].filter(({ why, at }) => why !== undefined && at !== Infinity).length
  }

  /** Whether a matching task has failed with an error only a few times; with more failures, it counts as impossible. */
  some(matches: (task: Task) => boolean): boolean {
    return [...this.failing.values()].some(
      ({ task, why, tries }) => why !== undefined && tries <= FEW && matches(task),
    )
  }

  /** @param failure.isPaused Whether to retry after a growing pause; otherwise in the next round. */
  failed(
    key: string,
    { task, why, isPaused }: Pick<Failure<Task>, 'task' | 'why'> & { isPaused: boolean },
  ): void {
    const before = this.failing.get(key)
    this.failing.delete(key)
    // An early retry does not lengthen the pause: with frequent rounds, pauses would soon be long.
    const wasEarly = isPaused && before !== undefined && before.at !== Infinity && before.at > monotonic()
    const tries = wasEarly ? before.tries : (before?.tries ?? 0) + 1
    const pause = Math.min(MAX_PAUSE, this.firstPause * 2 ** (tries - 1))
    const at = wasEarly ? before.at : isPaused ? monotonic() + pause : Infinity
    this.failing.set(key, { task, why, tries, at, isDue: false })
    if (this.failing.size <= MAX_FAILING) return
    const [oldest = ''] = this.failing.keys()
    this.failing.delete(oldest)
  }

  succeeded(key: string): void {
    this.failing.delete(key)
  }

  /** Whether it is too early to try a task again. */
  isWaiting(key: string): boolean {
    const { at = 0, isDue = true } = this.failing.get(key) ?? {}
    return !isDue && at > monotonic() && at !== Infinity
  }

  /** Begins a round, as a block may have changed the answers: tasks with few tries or without a pause are due. */
  newRound(): void {
    for (const failure of this.failing.values())
      failure.isDue ||= failure.tries <= FEW || failure.at === Infinity
  }

  /** When the next pause ends, on the monotonic clock; Infinity if there is none. */
  get nextDue(): number {
    return [...this.failing.values()].reduce(
      (next, { at, isDue }) => Math.min(next, isDue ? 0 : at),
      Infinity,
    )
  }

  /** The tasks that are due. */
  due(): Task[] {
    const now = monotonic()
    return [...this.failing.values()].filter(({ at, isDue }) => isDue || at <= now).map(({ task }) => task)
  }
}
