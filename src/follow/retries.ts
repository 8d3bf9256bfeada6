/** The longest pause between two tries, in milliseconds. */
const MAX_PAUSE = 6 * 3_600_000
/** After how many tries a pause is not cut short by a new block. */
const FEW = 6
/** How many failures are remembered. Of more, the oldest are forgotten: the sweep comes by again. */
const MAX_FAILING = 10_000

interface Failure<Task> {
  task: Task
  /** Undefined if it is not an error: something may just be known later. */
  why: string | undefined
  tries: number
  /** When it is tried again, in milliseconds since 1970; Infinity: in the next round. */
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

  /** @param failure.isPaused Whether it is tried again after a pause that grows; otherwise in the next round. */
  failed(
    key: string,
    { task, why, isPaused }: Pick<Failure<Task>, 'task' | 'why'> & { isPaused: boolean },
  ): void {
    const tries = (this.failing.get(key)?.tries ?? 0) + 1
    this.failing.delete(key)
    const pause = Math.min(MAX_PAUSE, this.firstPause * 2 ** (tries - 1))
    this.failing.set(key, { task, why, tries, at: isPaused ? Date.now() + pause : Infinity })
    if (this.failing.size <= MAX_FAILING) return
    const [oldest = ''] = this.failing.keys()
    this.failing.delete(oldest)
  }

  succeeded(key: string): void {
    this.failing.delete(key)
  }

  /** Whether it is too early to try a task again. */
  isWaiting(key: string): boolean {
    const at = this.failing.get(key)?.at ?? 0
    return at > Date.now() && at !== Infinity
  }

  /** Begins a round, as a block may have changed the answers: what was tried few times, or has no pause, is due. */
  newRound(): void {
    const now = Date.now()
    for (const failure of this.failing.values())
      if (failure.tries <= FEW || failure.at === Infinity) failure.at = Math.min(failure.at, now)
  }

  /** When the next pause is over, in milliseconds since 1970; Infinity if none is. */
  get nextDue(): number {
    return [...this.failing.values()].reduce((next, { at }) => Math.min(next, at), Infinity)
  }

  /** The tasks whose pause is over. */
  due(): Task[] {
    const now = Date.now()
    return [...this.failing.values()].filter(({ at }) => at <= now).map(({ task }) => task)
  }
}
