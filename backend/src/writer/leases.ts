import { randomBytes } from 'node:crypto'
import type { SharedLog } from '../facts/shared-log.js'
import { steadyTime } from '../protocol/monotonic.js'

/** How often a gateway looks who does a job, or says that it does it, in milliseconds. */
export const BEAT = 5000
/** After how long without a sign of the one that does a job another one takes it over, in milliseconds. */
const EXPIRES = 30_000
/** After how long without having said so the one that does a job stops, in milliseconds. */
const GIVES_UP = 20_000
const NAME = 'job '
const FREE = 'free'
/** More than there are. */
const MOST_JOBS = 10

/** What a gateway knows of a job. */
interface Lease {
  /** What the note says: who does it, and a number that changes with each sign of that one. */
  text: string | undefined
  /** When this gateway saw that for the first time. */
  seenAt: number
  /** When this gateway said last that it does it. */
  saidAt: number | undefined
}

export interface LeasesOptions {
  log: Pick<SharedLog, 'notes' | 'replaceNote'>
  /** A clock of this gateway: it is compared with itself alone. */
  now?: () => number
}

/**
 * Which jobs in the background this gateway does, of those that one gateway at a time is to do. Who does one changes its note every
 * {@link BEAT}; where it has not changed for {@link EXPIRES} by the watcher's own clock, the first to replace it takes over. Two may
 * do a job for a moment: that costs requests, and changes no answer.
 */
export class Leases {
  private readonly id = randomBytes(8).toString('hex')
  private readonly leases = new Map<string, Lease>()
  private signs = 0
  private readonly now: () => number

  constructor(private readonly options: LeasesOptions) {
    this.now = options.now ?? steadyTime
  }

  /** From now on, this gateway does these jobs when nobody else does, and leaves all others. @throws StoreUnavailableError */
  async seek(jobs: readonly string[]): Promise<void> {
    for (const job of jobs)
      if (!this.leases.has(job))
        this.leases.set(job, { text: undefined, seenAt: this.now(), saidAt: undefined })
    await this.leave([...this.leases.keys()].filter((job) => !jobs.includes(job)))
  }

  get held(): string[] {
    const at = this.now()
    return [...this.leases].flatMap(([job, { saidAt }]) =>
      saidAt !== undefined && at - saidAt < GIVES_UP ? [job] : [],
    )
  }

  /** Says what it does, and takes over what nobody does. @throws StoreUnavailableError */
  async beat(): Promise<void> {
    // In the order of names, those of jobs come first.
    const notes = await this.options.log.notes(NAME, MOST_JOBS)
    const said = new Map(notes.map(({ name, value }) => [name, value]))
    for (const [job, lease] of this.leases) await this.beatOf(job, { lease, text: said.get(NAME + job) })
  }

  /** Leaves its jobs to others. @throws StoreUnavailableError */
  async release(): Promise<void> {
    await this.leave([...this.leases.keys()])
  }

  private async leave(jobs: readonly string[]): Promise<void> {
    for (const job of jobs) {
      const { text, saidAt } = this.leases.get(job) ?? {}
      this.leases.delete(job)
      if (saidAt !== undefined) await this.options.log.replaceNote(NAME + job, { from: text, to: FREE })
    }
  }

  private async beatOf(
    job: string,
    { lease, text }: { lease: Lease; text: string | undefined },
  ): Promise<void> {
    const at = this.now()
    if (text !== lease.text) Object.assign(lease, { text, seenAt: this.now() })
    const isOwn = text?.startsWith(this.id) === true
    if (!isOwn) lease.saidAt = undefined
    if (!isOwn && text !== undefined && text !== FREE && this.now() - lease.seenAt < EXPIRES) return
    const sign = `${this.id} ${++this.signs}`
    if (await this.options.log.replaceNote(NAME + job, { from: text, to: sign }))
      Object.assign(lease, { text: sign, seenAt: at, saidAt: at })
  }
}
