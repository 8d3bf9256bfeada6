import { randomBytes } from 'node:crypto'
import type { SharedLog } from '../facts/shared-log.js'
import { steadyTime } from '../protocol/monotonic.js'

/** How often a gateway renews its leases and checks those of others, in milliseconds. */
export const BEAT = 5000
/** How long a job's holder may give no sign before another gateway takes the job over, in milliseconds. */
const EXPIRES = 30_000
/** A holder that could not renew its lease for this long stops the job, in milliseconds. */
const GIVES_UP = 20_000
const NAME = 'job '
const FREE = 'free'
/** More jobs than there are. */
const MOST_JOBS = 10

/** What a gateway knows of a job. */
interface Lease {
  /** Text of the job's note: the holder, and a number that changes with each renewal. */
  text: string | undefined
  /** When this gateway first saw that text. */
  seenAt: number
  /** When this gateway last renewed its own lease. */
  saidAt: number | undefined
}

export interface LeasesOptions {
  log: Pick<SharedLog, 'notes' | 'replaceNote'>
  /** A clock of this gateway, compared only with itself. */
  now?: () => number
}

/**
 * Leases on background jobs, each of which one gateway at a time does. The holder changes the job's note every {@link BEAT}; if
 * it is unchanged for {@link EXPIRES} by a watcher's own clock, the first to replace it takes over. Two gateways may briefly do
 * the same job: that costs requests and changes no answer.
 */
export class Leases {
  private readonly id = randomBytes(8).toString('hex')
  private readonly leases = new Map<string, Lease>()
  private signs = 0
  private readonly now: () => number

  constructor(private readonly options: LeasesOptions) {
    this.now = options.now ?? steadyTime
  }

  /** Seeks these jobs from now on, and gives up all others. @throws StoreUnavailableError */
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

  /** Renews its leases, and takes over jobs that nobody holds. @throws StoreUnavailableError */
  async beat(): Promise<void> {
    // The notes of jobs come first after this name.
    const notes = await this.options.log.notes(NAME, MOST_JOBS)
    const said = new Map(notes.map(({ name, value }) => [name, value]))
    for (const [job, lease] of this.leases) await this.beatOf(job, { lease, text: said.get(NAME + job) })
  }

  /** Gives up all jobs. @throws StoreUnavailableError */
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
