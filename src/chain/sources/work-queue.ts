/** How many tasks wait at most. What does not fit is dropped: a sweep comes by again. */
const MAX_WAITING = 10_000

export interface WorkQueueOptions<Task> {
  /** How many tasks are in progress at once. */
  parallel: number
  /** Begins nothing more. */
  signal: AbortSignal
  /** Must not throw. May push further tasks. */
  perform: (task: Task) => Promise<void>
}

/**
 * Performs tasks in parallel: those that were pushed before those of a list, the last pushed first. So a tree is followed
 * depth first, and only what branches off on the way waits.
 */
export class WorkQueue<Task> {
  /** Whether a task was dropped. */
  hasDropped = false
  private readonly waiting: Task[] = []
  private wakers: (() => void)[] = []
  private inProgress = 0

  constructor(private readonly options: WorkQueueOptions<Task>) {}

  /** How many tasks are in progress or wait. */
  get length(): number {
    return this.waiting.length + this.inProgress
  }

  push(task: Task): void {
    if (this.waiting.length >= MAX_WAITING) this.hasDropped = true
    else this.waiting.push(task)
    this.wake()
  }

  /** Performs what was pushed, and the tasks of a list; resolves when nothing is left, or it was stopped. */
  async run(list: Iterable<Task> | AsyncIterable<Task>): Promise<void> {
    const tasks = Symbol.asyncIterator in list ? list[Symbol.asyncIterator]() : list[Symbol.iterator]()
    const { parallel, signal, perform } = this.options
    let isListed = true
    const next = async (): Promise<Task | undefined> => {
      const pushed = this.waiting.pop()
      if (pushed !== undefined || !isListed) return pushed
      const { done, value } = await tasks.next()
      if (done !== true) return value
      isListed = false
      return this.waiting.pop()
    }
    let failure: { error: unknown } | undefined
    const work = async (): Promise<void> => {
      while (!signal.aborted && failure === undefined) {
        this.inProgress++
        try {
          const task = await next()
          if (task !== undefined && !signal.aborted) await perform(task)
          if (task !== undefined) continue
        } catch (error) {
          failure ??= { error }
        } finally {
          // Not each time: those that find nothing would wake each other without end.
          if (--this.inProgress === 0 || failure !== undefined) this.wake()
        }
        if (this.inProgress === 0) return
        await this.woken()
      }
    }
    await Promise.all(Array.from({ length: parallel }, work))
    if (failure !== undefined) throw failure.error
  }

  /** Resolves when something is pushed or {@link wake} is called, at the latest after so many milliseconds. */
  async pushed(milliseconds: number): Promise<void> {
    if (this.waiting.length > 0 || this.options.signal.aborted) return
    let timer: NodeJS.Timeout | undefined
    const isTime = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, milliseconds).unref()
    })
    await Promise.race([this.woken(), isTime])
    clearTimeout(timer)
  }

  wake(): void {
    const { wakers } = this
    this.wakers = []
    for (const each of wakers) each()
  }

  private async woken(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.wakers.push(resolve)
    })
  }
}
