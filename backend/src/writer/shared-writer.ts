import { setTimeout as sleep } from 'node:timers/promises'
import { Mutex } from 'async-mutex'
import { FACT } from '../facts/log.js'
import { makeMirror } from '../facts/log-file.js'
import {
  latestOf,
  nextOf,
  readNumberedKey,
  register,
  SCORE_MARGIN,
  TREE_SETTINGS,
} from '../facts/registers.js'
import { type LogRow, type Note, OtherLogError, type SharedLog } from '../facts/shared-log.js'
import type { AdmissionOptions } from '../graph/admission-rules.js'
import { isDamage, StoreUnavailableError } from '../graph/errors.js'
import { steadyTime } from '../protocol/monotonic.js'
import { BEAT, Leases } from './leases.js'
import { imagesFolder, LocalWriter, RETRY_DELAY } from './local-writer.js'
import { Mirror } from './mirror.js'
import type { Outcome, Task } from './queue.js'
import { proofInNote, SharedState, WITHOUT_ANCESTORS } from './shared-state.js'
import type { WriterStatus } from './writer.js'

/** How often an idle gateway reads what others have written, in milliseconds. */
const POLL = 200
/** How often reads of the log are reported, in milliseconds. */
const REPORT = 1000
/** How long after a write by others more are expected, in milliseconds. */
const COMPANY = 5000

/** The job of deleting orphaned chunks, and the note of the place up to which that is done. */
const COLLECT = 'collect'
const COLLECTED = 'collected'

export interface SharedWriterOptions {
  /** Holds the copy of the log, and the index. */
  folder: string
  shared: SharedLog
  /** How often the writes of others are read, in milliseconds. */
  poll?: number
}

/**
 * A writer over a log that several gateways share. It tries writes on its own copy of the log, and inserts the resulting facts
 * right after that. If another gateway was faster, it rolls back, applies what that one wrote, and tries again. So gateways
 * decide one after the other, and each index is as if one gateway had received all writes in the order of the log.
 */
export class SharedWriter extends LocalWriter {
  override readonly logRead: Promise<void>
  private readonly mirror: Mirror
  private readonly sharedState: SharedState
  private readonly leases: Leases
  private readonly shared: SharedLog
  private readonly mutex = new Mutex()
  private readonly poll: number
  private polling: NodeJS.Timeout | undefined
  private beating: Promise<void> | undefined
  private jobs: readonly string[] = []
  /** The place up to which orphaned chunks were deleted. */
  private collected: number | undefined
  /** When the log was last read to its end, when that was reported, and when others last wrote. */
  private heardAt = 0
  private reportedAt = 0
  private othersAt = Number.NEGATIVE_INFINITY
  /** Set once the log has other rules than this gateway was started with. */
  private outdated: string | undefined
  /** Until then others go first, as this one has just written. */
  private othersUntil = 0

  /** The copy of the log in the folder is brought up to date in the background: see {@link logRead}. */
  constructor({ folder, shared, poll = POLL }: SharedWriterOptions) {
    super({ folder }, (logFile) => makeMirror(logFile, shared.id))
    // Lost parts of the copy are read again.
    this.logFile.exec('pragma synchronous = normal')
    const { logFile, log, pending, state } = this
    this.shared = shared
    this.poll = poll
    this.mirror = new Mirror({ shared, logFile, log, pending, state, images: imagesFolder(folder) })
    this.sharedState = new SharedState({ log: shared, logFile })
    this.leases = new Leases({ log: shared })
    this.report({ state: 'reading', done: 0 })
    this.logRead = this.readLog()
    // Callers that await it get the error; nobody has to.
    this.logRead.catch(() => {})
    this.schedule()
  }

  /** Applies what others have written by now. */
  async follow(): Promise<void> {
    if (this.current !== undefined) await this.queue.add(FOLLOW)
  }

  override async seekJobs(jobs: readonly string[]): Promise<void> {
    const seeking = this.leases.seek([...jobs, COLLECT])
    this.beating ??= this.beatOn()
    await seeking
    const { held } = this.leases
    this.setJobs(this.jobs.filter((job) => held.includes(job)))
  }

  /** Renews leases, and reads how far others have come. */
  async beat(): Promise<void> {
    // Others can do its jobs.
    if (this.outdated !== undefined) await this.leases.release().catch(() => {})
    await this.leases.beat().catch(() => {})
    const { held } = this.leases
    const kept = this.jobs.filter((job) => held.includes(job))
    this.setJobs(kept)
    const isNew = held.length > kept.length
    await this.hearState(isNew ? '' : WITHOUT_ANCESTORS)
    this.setJobs(held)
    if (held.includes(COLLECT)) await this.collect()
    else this.collected = undefined
  }

  /** Deletes the chunks of batches that were never inserted, as by gateways that were killed. */
  private async collect(): Promise<void> {
    const { shared, mirror } = this
    const to = mirror.place.seq
    if (this.collected === undefined) {
      const [note] = await shared.notes(WITHOUT_ANCESTORS, 1)
      this.collected = note?.name === COLLECTED ? Number(note.value) : 0
    }
    // An earlier backup may have been restored just now.
    if (to <= this.collected || (await shared.last()) < to) return
    await shared.collect({ from: this.collected, to })
    await shared.note([{ name: COLLECTED, value: String(to) }])
    this.collected = to
  }

  override async close(): Promise<void> {
    this.closing.abort()
    clearTimeout(this.polling)
    await Promise.allSettled([this.logRead, this.beating])
    await this.sharedState.publish().catch(() => {})
    await super.close()
    await this.leases.release().catch(() => {})
    await this.mutex.runExclusive(() => this.shared.close())
  }

  protected override async open(admission: AdmissionOptions): Promise<void> {
    await this.logRead
    await this.mutex.runExclusive(() => this.fill())
    // Another may have pinned one since it was read which one there is.
    if (this.lacksTree(admission) && latestOf(this.log, GENESIS) !== undefined) this.outdate(NEW_TREE)
    this.assertCurrent()
    await super.open(admission)
  }

  protected override async commit(tasks: Task[]): Promise<Outcome[]> {
    this.assertCurrent()
    const follows = tasks.every(({ run }) => run === FOLLOW)
    if (!follows) await this.letOthersWrite()
    return await this.mutex.runExclusive(async () => {
      const began = steadyTime()
      // A lone writer checks the log as it inserts: one round trip instead of two.
      const isToBeRead = follows || this.mayLag || this.current === undefined || this.hasCompany
      for (let isRead = isToBeRead; ; isRead = true) {
        if (isRead) await (this.current === undefined ? this.fill() : this.storeOthers())
        if (follows && !this.mayLag) {
          void this.sharedState.publish().catch(() => {})
          return tasks.map(() => ({ done: undefined }))
        }
        const trial = this.tryOut(tasks)
        let isFirst = false
        try {
          isFirst = await this.mirror.append({ isLate: !isRead })
        } catch (error) {
          if (!(error instanceof OtherLogError)) throw error
        } finally {
          // Others have written meanwhile, or it is unknown whether it was inserted.
          if (!isFirst) this.undo(trial)
        }
        if (!isFirst) continue
        // Changes have places behind the facts, and a read may wait for one.
        this.current?.index.apply(this.log.after(this.current.index.cursor))
        const outcomes = this.keep(trial)
        void this.sharedState.publish().catch(() => {})
        void this.mirror.tidy()
        this.othersUntil = this.hasCompany ? 2 * steadyTime() - began : 0
        return outcomes
      }
    })
  }

  /** Stores what others have written in the copy of the log, all before any is applied: later rows explain removed bytes. */
  private async storeOthers(): Promise<void> {
    for (let isLast = false; !isLast; ) {
      const read = await this.read()
      isLast = read.isLast
      if (read.rows.length === 0) continue
      this.othersAt = steadyTime()
      this.mayLag = true
      if (this.mirror.isPrunedBy(read.rows))
        throw this.deriveAgain(new Error('facts were removed from the log'))
      // The index was opened before this was decided, and its default may differ.
      if (read.rows.some(setsTracker)) throw this.deriveAgain(new Error('the tracker of the log was set'))
      this.mirror.store(read.rows)
      if (read.rows.some(replacesRule)) this.outdate(NEW_SETTING)
      // It would store mints that nodes disagree about, and its index lacks all names.
      if (read.rows.some(pinsTree) && this.lacksTree(this.admission)) this.outdate(NEW_TREE)
      this.assertCurrent()
    }
  }

  private outdate(reason: string): void {
    this.outdated = reason
    this.report(this.status)
  }

  private assertCurrent(): void {
    if (this.outdated !== undefined) throw new StoreUnavailableError(new Error(this.outdated))
  }

  private lacksTree(admission: AdmissionOptions | undefined): boolean {
    return admission?.rules.genesis === undefined
  }

  /** Takes the proof of a transaction that was refused here and waits. */
  private prove(note: Note): void {
    const found = proofInNote(note)
    const waiting = found && this.pending.get(found.txid)
    if (found === undefined || waiting === undefined) return
    const { txid, raw } = waiting
    this.record([{ txid, raw, proof: found.proof }]).catch(() => {})
  }

  /** Retries transactions that were refused here and may count after the writes of others, who do not know them. */
  protected override onApplied(txids: readonly string[]): void {
    this.retry(txids.filter((txid) => this.mirror.isOwn(txid)))
  }

  /**
   * Reads the log for the first time, trying until it can be reached, and then the notes of others beside it.
   *
   * @throws DamagedError
   */
  private async readLog(): Promise<void> {
    while (!this.closing.signal.aborted)
      try {
        await this.mutex.runExclusive(() => this.fill())
        await this.hearState('')
        this.report({ state: 'rebuilding', done: 0 })
        return
      } catch (error) {
        if (isDamage(error)) {
          this.reportFailure?.(error)
          throw error
        }
        await sleep(RETRY_DELAY, undefined, { signal: this.closing.signal }).catch(() => {})
      }
  }

  /**
   * Brings the copy of the log up to date, while the index is not open. Gives a log without facts the base of its scores, and a
   * higher one to a log that was restored from an earlier backup: peers may be past the scores given before.
   *
   * @param given Above all scores given by lost facts, in milliseconds since 1970.
   */
  private async fill(given = 0): Promise<void> {
    const { logFile, log, mirror } = this
    let above = given
    const last = await this.shared.last()
    for (let isLast = false; !isLast; ) {
      this.closing.signal.throwIfAborted()
      const read = await this.read().catch((error: unknown) => {
        if (!(error instanceof OtherLogError)) throw error
        above = this.nextScore() + SCORE_MARGIN
        this.forgetIndex()
        mirror.clear()
        return { rows: [], isLast: false }
      })
      isLast = read.isLast
      const isOther = mirror.place.seq > 0 && read.rows.some(setsTracker)
      // Before the facts are gone: an index with more facts than the log would be taken for one of it.
      if (isOther || mirror.isPrunedBy(read.rows)) this.forgetIndex()
      mirror.store(read.rows)
      if (!isLast) this.report({ state: 'reading', done: Math.min(1, mirror.place.seq / last) })
    }
    if (mirror.place.seq > 0 && this.nextScore() >= above) return
    logFile.exec('begin immediate')
    try {
      const base = nextOf(log, register.setting('base'), String(Math.max(above, Date.now())))
      if (base !== undefined) log.insert(base)
      if (await mirror.append()) {
        logFile.exec('commit')
        return
      }
    } finally {
      if (logFile.inTransaction) logFile.exec('rollback')
    }
    await this.fill(above)
  }

  /** About the next score, in milliseconds since 1970: a fact takes one, or a few if it has many outputs. */
  private nextScore(): number {
    return Number(latestOf(this.log, register.setting('base'))?.value ?? 0) + this.mirror.place.seq
  }

  private async read(): ReturnType<Mirror['read']> {
    try {
      const read = await this.mirror.read()
      if (read.isLast) this.hear()
      return read
    } catch (error) {
      if (!(error instanceof OtherLogError) || this.current === undefined) throw error
      throw this.deriveAgain(error)
    }
  }

  /** Has everything read and derived again. Returns the error for waiting writes, which may be retried. */
  private deriveAgain(cause: unknown): StoreUnavailableError {
    this.current = undefined
    if (this.admission !== undefined) this.deriveBy(this.admission)
    return new StoreUnavailableError(cause)
  }

  /** Called before facts are removed: readers must not conclude from an index without them that something does not exist. */
  private forgetIndex(): void {
    const isNews = !this.isEmptied
    this.isEmptied = true
    if (isNews) this.report({ state: 'reading', done: 0 })
    this.indexFile.run("update meta set value = '' where name = 'log'")
  }

  private hear(): void {
    this.heardAt = steadyTime()
    if (this.heardAt - this.reportedAt >= REPORT) this.reportAgain()
  }

  private reportAgain(): void {
    if (this.status.state === 'equal') this.report(this.status)
  }

  /** Reading the log is half of the work of a start, deriving the index the other. */
  protected override report({ state, done }: WriterStatus): void {
    const { heardAt, jobs, outdated } = this
    this.reportedAt = heardAt
    super.report({
      ...{ state, done: state === 'equal' ? done : (done + Number(state === 'rebuilding')) / 2, jobs },
      ...(heardAt > 0 && { heardAt }),
      ...(outdated !== undefined && { outdated }),
      ...(this.shared.warning !== undefined && { warning: this.shared.warning }),
    })
  }

  private async beatOn(): Promise<void> {
    const { signal } = this.closing
    while (!signal.aborted) {
      await this.beat().catch(() => {})
      await sleep(BEAT, undefined, { signal, ref: false }).catch(() => {})
    }
  }

  private setJobs(jobs: readonly string[]): void {
    if (jobs.length === this.jobs.length) return
    this.jobs = jobs
    this.reportAgain()
  }

  private async hearState(after: string): Promise<void> {
    const news = await this.mutex.runExclusive(async () =>
      this.sharedState.take(await this.sharedState.read(after)),
    )
    for (const note of news) this.prove(note)
  }

  private get hasCompany(): boolean {
    return steadyTime() - this.othersAt < COMPANY
  }

  /** The last writer would be first again, as the others have to apply its write. */
  private async letOthersWrite(): Promise<void> {
    const wait = this.othersUntil - steadyTime()
    if (wait > 0 && this.hasCompany) await sleep(Math.min(wait, COMPANY))
  }

  private schedule(): void {
    if (this.closing.signal.aborted) return
    this.polling = setTimeout(async () => {
      await this.follow().catch(() => {})
      this.schedule()
    }, this.poll)
    this.polling.unref()
  }
}

/** The task of a writer that has nothing to write. */
const FOLLOW = (): void => {}

function replacesRule({ kind, key }: LogRow): boolean {
  if (kind !== FACT.register) return false
  const { subject, n } = readNumberedKey(key)
  return n > 1 && TREE_SETTINGS.some((name) => subject === register.setting(name))
}

const TRACKER = register.setting('tracker')
const GENESIS = register.setting('genesis')
const NEW_SETTING = 'a setting of the log was replaced: restart this gateway with the new value'
const NEW_TREE = 'another gateway has pinned a tree in the log: restart this one'

/** Whether a row decides for the first time which proofs count. */
const setsTracker = (row: LogRow): boolean => isFirstOf(row, TRACKER)
const pinsTree = (row: LogRow): boolean => isFirstOf(row, GENESIS)

function isFirstOf({ kind, key }: LogRow, setting: string): boolean {
  if (kind !== FACT.register) return false
  const { subject, n } = readNumberedKey(key)
  return n === 1 && subject === setting
}
