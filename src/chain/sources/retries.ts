import { monotonic } from '../../../backend/src/protocol/monotonic.js'

/** The longest pause between two tries, in milliseconds. */
const MAX_PAUSE = 6 * 3_600_000
/** After how many tries a pause is not cut short by a new block. */
const FEW = 6
/** How many failures are remembered. Of more, the oldest are forgotten: the sweep comes by again. */
export const MAX_FAILING = 10_000

interface Failure<Task> {
  task: Task
  /** Undefined if it is not an error: something may just be known later. */
  why: string | undefined
  tries: number
  /** When it is tried again, on the monotonic clock; Infinity: in the next round. */
  at: number
  /** Whether it is due earlier, with a round that began. */
  isDue: boolean
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

  /** How many of them failed with an error, and are tried again after a pause. */
  get paused(): number {
    return [...this.failing.values()].filter(({ why, at }) => why !== undefined && at !== Infinity).length
  }

  /** Whether a task that matches failed with an error a few times only: later it counts as one that cannot be done. */
  some(matches: (task: Task) => boolean): boolean {
    return [...this.failing.values()].some(
      ({ task, why, tries }) => why !== undefined && tries <= FEW && matches(task),
    )
  }

  /** @param failure.isPaused Whether it is tried again after a pause that grows; otherwise in the next round. */
  failed(
    key: string,
    { task, why, isPaused }: Pick<Failure<Task>, 'task' | 'why'> & { isPaused: boolean },
  ): void {
    const before = this.failing.get(key)
    this.failing.delete(key)
    // A try before its time makes the pause no longer: with frequent rounds it would be long soon.
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

  /** Begins a round, as a block may have changed the answers: what was tried few times, or has no pause, is due. */
  newRound(): void {
    for (const failure of this.failing.values())
      failure.isDue ||= failure.tries <= FEW || failure.at === Infinity
  }

  /** When the next pause is over, on the monotonic clock; Infinity if none is. */
  get nextDue(): number {
    return [...this.failing.values()].reduce(
      (next, { at, isDue }) => Math.min(next, isDue ? 0 : at),
      Infinity,
    )
  }

  /** The tasks whose pause is over. */
  due(): Task[] {
    const now = monotonic()
    return [...this.failing.values()].filter(({ at, isDue }) => isDue || at <= now).map(({ task }) => task)
  }
}
