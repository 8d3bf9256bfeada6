import { beefOfHook, type FailedHook, type HookOutbox, subjectOf } from '../graph/hook-outbox.js'

/** A hook that failed, or one that was repeated and failed again. */
export interface HookFailure {
  service: string
  /** What it was about; without it, the notes themselves could not be read. */
  note?: FailedHook
  /** Where it is remembered: `lost` where the database took no note, and memory holds as many as it may. */
  kept: 'noted' | 'in memory' | 'lost'
  error: unknown
}

export interface HookRetriesOptions {
  service: string
  notes: HookOutbox
  /** Does what a note is about. Has to bear being asked twice. */
  repeat: (note: FailedHook) => Promise<void>
  /** Runs a round of repeats when nobody else writes; by default, at once. */
  turn?: ((round: () => Promise<void>) => Promise<void>) | undefined
  /** Whether what is noted is repeated here; by default, it is. */
  repeats?: boolean | undefined
  onHookFailure?: ((failure: HookFailure) => void) | undefined
  times?: Partial<RepeatTimes> | undefined
}

/** When notes are tried again, in milliseconds. */
export interface RepeatTimes {
  /** After the start, and after a hook that failed. */
  soon: number
  /** The most that the wait grows to, doubled after every round that got nothing done. */
  longest: number
  /** Between two looks where nothing is known to wait: another process may have left a note. */
  idle: number
}

const TIMES: RepeatTimes = { soon: 2000, longest: 5 * 60_000, idle: 60_000 }

/** What is held in memory while not even a note can be written: bytes of BEEF, and notes. */
const MEMORY_BYTES = 64 * 1024 * 1024
const MEMORY_NOTES = 10_000

/**
 * What hooks could not do, remembered and repeated until it is done: durably by a note, and while the database takes none,
 * in memory as far as that goes. Hooks bear repetition and any order, so that nothing else has to wait for them.
 */
export class HookRetries {
  private readonly unwritten = new Map<string, FailedHook>()
  private unwrittenBytes = 0
  private readonly times: RepeatTimes
  private timer: NodeJS.Timeout | undefined
  private underWay: Promise<void> | undefined
  private wait: number
  private closed = false

  constructor(private readonly options: HookRetriesOptions) {
    this.times = { ...TIMES, ...options.times }
    this.wait = this.times.soon
    this.schedule(this.wait)
  }

  /**
   * Does what a hook is to do; where that fails, remembers it.
   *
   * @param noteOf Asked for where it fails.
   * @throws what `work` threw, where no note of it could be written: the host logs that.
   */
  async run(noteOf: () => FailedHook, work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      const note = noteOf()
      const kept = await this.remember(note)
      this.options.onHookFailure?.({ service: note.service, note, kept, error })
      this.wait = this.times.soon
      this.schedule(this.wait)
      if (kept !== 'noted') throw error
    }
  }

  /** Repeats nothing any more, and resolves when nothing is under way. What is noted is repeated after the next start. */
  async close(): Promise<void> {
    this.closed = true
    clearTimeout(this.timer)
    await this.underWay
  }

  private async remember(note: FailedHook): Promise<HookFailure['kept']> {
    try {
      await this.options.notes.keep(note)
      this.forget(note)
      return 'noted'
    } catch {
      // The database that did not take the record does not take the note: what the record said is told to the host.
      return this.holdInMemory(note) ? 'in memory' : 'lost'
    }
  }

  private holdInMemory(note: FailedHook): boolean {
    const subject = subjectOf(note)
    if (this.unwritten.has(subject)) return true
    const bytes = this.unwrittenBytes + bytesOf(note)
    if (this.unwritten.size >= MEMORY_NOTES || bytes > MEMORY_BYTES) return false
    this.unwritten.set(subject, note)
    this.unwrittenBytes = bytes
    return true
  }

  private forget(note: FailedHook): void {
    if (this.unwritten.delete(subjectOf(note))) this.unwrittenBytes -= bytesOf(note)
  }

  private schedule(milliseconds: number): void {
    if (this.closed || this.options.repeats === false) return
    clearTimeout(this.timer)
    this.timer = setTimeout(() => {
      this.underWay ??= this.takeTurn().finally(() => {
        this.underWay = undefined
        this.schedule(this.wait)
      })
    }, milliseconds).unref()
  }

  private async takeTurn(): Promise<void> {
    const { service, turn = (round) => round(), onHookFailure } = this.options
    try {
      await turn(() => this.round())
    } catch (error) {
      // The notes could not be read: they are where they were.
      onHookFailure?.({ service, kept: 'noted', error })
      this.later()
    }
  }

  /** Tries everything that is remembered once. */
  private async round(): Promise<void> {
    let done = 0
    let left = 0
    const attempt = async (note: FailedHook): Promise<void> => {
      if (this.closed) return
      if (await this.repeated(note)) done++
      else left++
    }
    for (const note of [...this.unwritten.values()]) await attempt(note)
    for await (const note of this.options.notes.kept(this.options.service)) {
      if (this.closed) return
      if (!this.unwritten.has(subjectOf(note))) await attempt(note)
    }
    if (left === 0) this.wait = this.times.idle
    else if (done > 0) this.wait = this.times.soon
    else this.later()
  }

  private later(): void {
    this.wait = Math.min(Math.max(this.wait, this.times.soon) * 2, this.times.longest)
  }

  private async repeated(note: FailedHook): Promise<boolean> {
    const { service, repeat, notes, onHookFailure } = this.options
    try {
      await repeat(note)
      await notes.release(note)
      this.forget(note)
      return true
    } catch (error) {
      onHookFailure?.({ service, note, kept: await this.remember(note), error })
      return false
    }
  }
}

function bytesOf(note: FailedHook): number {
  return beefOfHook(note)?.length ?? 0
}
