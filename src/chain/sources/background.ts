import { setTimeout as sleep } from 'node:timers/promises'

/** How often to check whether a job has become this process's, in milliseconds. */
const LOOK = 1000

/** Whether this process does a job: of those that share a store, one does it at a time. */
export type IsMine = () => boolean

/** Resolves when a job is this process's, or a signal is aborted. */
export async function untilMine(isMine: IsMine | undefined, signal: AbortSignal): Promise<void> {
  while (isMine?.() === false && !signal.aborted) await pause(LOOK, signal)
}

/** Resolves after some milliseconds, or when a signal is aborted. It does not keep the process running. */
export async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  await sleep(Math.max(0, milliseconds), undefined, { signal, ref: false }).catch(() => {})
}

/** The result of some work; undefined if it takes longer than some milliseconds. */
export async function unlessLate<Result>(
  work: Promise<Result>,
  milliseconds: number,
): Promise<Result | undefined> {
  const over = new AbortController()
  const late = pause(milliseconds, over.signal) as Promise<undefined>
  return await Promise.race([work, late]).finally(() => over.abort())
}

/** Work that is repeated in the background until it is stopped. */
export class BackgroundJob {
  private readonly stopping = new AbortController()
  private waking = new AbortController()
  private running: Promise<void> | undefined

  /**
   * @param round Does the work once, and never rejects. Returns the pause before the next round, in milliseconds; undefined for no
   * further round.
   * @param isMine Whether this process does the work; by default, it always does.
   */
  constructor(
    private readonly round: (signal: AbortSignal) => Promise<number | undefined>,
    private readonly isMine?: IsMine,
  ) {}

  /** Aborted when the job is to stop. */
  get signal(): AbortSignal {
    return this.stopping.signal
  }

  start(): void {
    this.running ??= this.run()
  }

  /** Begins the next round without a pause. */
  wake(): void {
    this.waking.abort()
  }

  /** Resolves when the current round has ended. */
  async stop(reason?: Error): Promise<void> {
    this.stopping.abort(reason)
    this.wake()
    await this.running
  }

  private async run(): Promise<void> {
    const { signal } = this
    for (;;) {
      await untilMine(this.isMine, signal)
      if (signal.aborted) return
      this.waking = new AbortController()
      const milliseconds = await this.round(signal)
      if (milliseconds === undefined || signal.aborted) return
      if (milliseconds > 0) await pause(milliseconds, this.waking.signal)
    }
  }
}
