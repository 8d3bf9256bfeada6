import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Sql } from '../facts/connection.js'
import { LocalLog } from '../facts/local-log.js'
import { makeLog } from '../facts/log-file.js'
import { isRegisteredSetting, pinOf } from '../facts/registers.js'
import { Pending, State } from '../facts/state.js'
import type { AdmissionOptions } from '../graph/admission-rules.js'
import { isDamage, isDamagedFile } from '../graph/errors.js'
import type { TransactionRecord } from '../graph/records.js'
import type { Index } from '../index/apply.js'
import { INDEX_VERSION } from '../index/schema.js'
import { fromHex } from '../protocol/bytes.js'
import type { Outpoint } from '../protocol/outpoint.js'
import { applyNext, catchUp, emptyIndex, makeIndex, openIndex, trackerOf } from './catch-up.js'
import { Door, type RecordTransactions } from './door.js'
import { BusySince, CommitCount, type Outcome, type Task, WriteQueue, withPatience } from './queue.js'
import {
  type Changed,
  type DoorMethod,
  type Place,
  type Recorded,
  type StateMethod,
  submittedBytes,
  type Writer,
  type WriterStatus,
  type Written,
} from './writer.js'

/** The files of a store, in its folder. */
export function storeFiles(folder: string): { log: string; index: string } {
  return { log: join(folder, 'log.db'), index: join(folder, `index-${INDEX_VERSION}.db`) }
}

const INDEX_FILES = /^index-(\d+)\.db/

/**
 * Commits of the log are synced; the index can be derived again. A page of 4 KiB that many commits change is copied out of the WAL
 * once for all of them: the more commits, the less work.
 */
const LOG_PRAGMAS = `
pragma journal_mode = wal; pragma synchronous = full; pragma busy_timeout = 5000; pragma cache_size = -8192;
pragma temp_store = memory; pragma wal_autocheckpoint = 4000;`
const INDEX_PRAGMAS = `
pragma journal_mode = wal; pragma synchronous = normal; pragma busy_timeout = 5000; pragma cache_size = -16384;
pragma temp_store = memory; pragma wal_autocheckpoint = 4000;`

/** How long until it is tried again to bring the index up to date, in milliseconds. */
export const RETRY_DELAY = 2000

/** What a task did, beside its result, once it is committed. */
interface Done<Result> extends Written {
  result: Result
  admitted: Recorded['admitted']
}

/** Tasks that were run, and are not committed yet. */
export interface Trial {
  outcomes: Outcome[]
  mark: ReturnType<Index['mark']>
  totals: ReturnType<Pending['mark']>
}

/** The index with what is needed to write. */
interface Opened {
  index: Index
  door: Door
}

/**
 * The writer in this thread. It has the only connections that write; each task is one piece of work without a pause. What concerns
 * the index waits until that has all facts of the log; the rules that it is derived by may come later ({@link deriveBy}).
 */
export class LocalWriter implements Writer {
  readonly opened: Promise<void>
  readonly logRead: Promise<void> = Promise.resolve()
  readonly since = new BusySince()
  readonly commits = new CommitCount()
  private readonly folder: string
  protected readonly logFile: Sql
  protected readonly indexFile: Sql
  protected readonly log: LocalLog
  protected readonly state: State
  protected readonly pending: Pending
  /** What needs the index waits here until that is equal to the log. */
  protected readonly queue = new WriteQueue(
    (tasks) => this.commit(tasks),
    this.since,
    (error) => this.mendIndex(error),
  )
  /** What needs the log alone does not wait for it. */
  private readonly early = new WriteQueue((tasks) => this.commitLog(tasks), this.since)
  protected current: Opened | undefined
  /** Whether the log may have facts that the index lacks. */
  protected mayLag = true
  protected admission: AdmissionOptions | undefined
  /** Until it is equal again, the index has nothing that readers could go on with. */
  protected isEmptied = false
  private isDamaged = false
  private progress: WriterStatus = { state: 'rebuilding', done: 0 }
  private readonly listeners: ((status: WriterStatus) => void)[] = []
  private deriving: Promise<void> = Promise.resolve()
  protected readonly closing = new AbortController()
  private reportOpened: (() => void) | undefined
  protected reportFailure: ((error: unknown) => void) | undefined

  /**
   * Opens the files in a folder, or makes them.
   *
   * @param make Makes the tables of the log.
   */
  constructor({ folder }: { folder: string }, make: (logFile: Sql) => void = makeLog) {
    mkdirSync(folder, { recursive: true })
    const files = storeFiles(folder)
    this.folder = folder
    this.logFile = new Sql(files.log)
    this.logFile.exec(LOG_PRAGMAS)
    make(this.logFile)
    this.log = new LocalLog(this.logFile)
    this.state = new State(this.logFile)
    this.pending = new Pending(this.logFile, () => this.current?.index.touch())
    this.indexFile = new Sql(files.index)
    this.indexFile.exec(INDEX_PRAGMAS)
    makeIndex(this.files)
    this.queue.hold()
    this.opened = new Promise((resolve, reject) => {
      this.reportOpened = resolve
      this.reportFailure = reject
    })
    // Callers that wait for it get the error; none has to wait.
    this.opened.catch(() => {})
  }

  /** From now on the index is derived by these rules. Writes wait until it has all facts of the log. */
  deriveBy(admission: AdmissionOptions): void {
    this.admission = admission
    this.queue.hold()
    this.deriving = this.deriving.then(async () => {
      await this.queue.idle()
      while (!this.closing.signal.aborted) {
        try {
          await this.open(admission)
          this.reportOpened?.()
          return
        } catch (error) {
          this.reportFailure?.(error)
          this.queue.refuse(error)
          // A disk that is full may have room again; what is damaged stays so.
          if (isDamage(error)) return
          await sleep(RETRY_DELAY, undefined, { signal: this.closing.signal }).catch(() => {})
        }
      }
    })
  }

  get status(): WriterStatus {
    return this.progress
  }

  /** Calls a listener with the status, now and whenever it changes. */
  onStatus(listener: (status: WriterStatus) => void): void {
    this.listeners.push(listener)
    listener(this.progress)
  }

  async record(
    transactions: readonly TransactionRecord[],
    options?: RecordTransactions,
    place: Place = { weight: submittedBytes(transactions) },
  ): Promise<Recorded> {
    const { result, ...written } = await this.atDoor((door) => door.record(transactions, options), place)
    return { ...written, ...result }
  }

  async change<Method extends DoorMethod>(
    method: Method,
    ...args: Parameters<Door[Method]>
  ): Promise<Changed<Method>> {
    const run = (door: Door): unknown => (door[method] as (...args: unknown[]) => unknown)(...args)
    const { result, reorganised } = await this.atDoor(run)
    return { reorganised, result: result as ReturnType<Door[Method]> }
  }

  async note<Method extends StateMethod>(method: Method, ...args: Parameters<State[Method]>): Promise<void> {
    await this.beside(() => {
      ;(this.state[method] as (...args: unknown[]) => void)(...args)
      if (method === 'postpone' && this.current !== undefined)
        this.state.forgetFound((each) => this.isMissing(each))
    })
  }

  async setting(name: string, value: string, from?: string): Promise<Written> {
    const isOpen = this.current !== undefined
    if (isOpen && isRegisteredSetting(name)) return await this.atDoor((door) => door.pin(name, value, from))
    await this.beside(() => {
      if (!isRegisteredSetting(name)) return this.state.set(name, value)
      const next = pinOf(this.log, { name, value, from })
      if (next !== undefined) this.log.insert(next)
    })
    return { reorganised: 0 }
  }

  /** All jobs are its own. */
  async seekJobs(_jobs: readonly string[]): Promise<void> {}

  /** Ends what is running, and closes the files. What waits for rules is refused. */
  async close(): Promise<void> {
    this.closing.abort()
    await this.deriving
    await this.queue.idle()
    await this.early.idle()
    this.queue.refuse(new Error('the writer is closed'))
    this.logFile.close()
    this.indexFile.close()
  }

  /** Whether the origin of an output that counts is unknown. */
  private isMissing({ txid, vout }: Outpoint): boolean {
    const row = this.indexFile.get(
      'select 1 as one from tx join missing on tid = id where txid = ? and vout = ? and active = 1',
      ...[fromHex(txid), vout],
    )
    return row !== undefined
  }

  protected async open(admission: AdmissionOptions): Promise<void> {
    const { log, logFile, indexFile, pending } = this
    this.current = undefined
    if (this.isDamaged) emptyIndex(this.files)
    this.isDamaged = false
    const index = openIndex(this.files, { rules: admission.rules })
    this.report({ state: 'rebuilding', done: index.cursor / log.last })
    await catchUp(this.files, {
      index,
      onProgress: (done) => this.report({ state: 'rebuilding', done }),
      isAborted: () => this.closing.signal.aborted,
    })
    if (this.closing.signal.aborted) return
    const tracker = trackerOf(log)
    const door = new Door({ log, logFile, indexFile, index, pending, admission, tracker })
    this.current = { index, door }
    this.mayLag = true
    this.removeOldIndexes()
    this.commits.raise()
    this.isEmptied = false
    this.report({ state: 'equal', done: 1 })
    this.queue.release()
  }

  /** Derives the index again if a write found that its file is damaged. A log that is cannot be mended. */
  private mendIndex(error: unknown): unknown {
    if (this.admission === undefined || !isDamagedFile(error) || isWhole(this.indexFile)) return error
    this.isEmptied = true
    this.isDamaged = true
    this.report({ state: 'rebuilding', done: 0 })
    this.deriveBy(this.admission)
    const message = 'the file of the index is damaged: it is derived again from the log'
    return Object.assign(new Error(message, { cause: error }), { code: 'DAMAGED' })
  }

  protected report(status: WriterStatus): void {
    this.progress = { ...status, ...(this.isEmptied && { isEmptied: true }) }
    for (const listener of this.listeners) listener(this.progress)
  }

  protected get files(): { log: LocalLog; indexFile: Sql } {
    return { log: this.log, indexFile: this.indexFile }
  }

  /** Those of earlier versions: this one has all facts. That of a later one waits for its start. */
  private removeOldIndexes(): void {
    for (const name of readdirSync(this.folder))
      if (Number(INDEX_FILES.exec(name)?.[1]) < INDEX_VERSION)
        rmSync(join(this.folder, name), { force: true })
  }

  private async atDoor<Result>(work: (door: Door) => Result, place: Place = {}): Promise<Done<Result>> {
    const run = (): Done<Result> => {
      const { door } = this.current as Opened
      const result = work(door)
      const { admitted, restored, deactivated } = door.takeOutcome()
      return { result, admitted, reorganised: restored.length + deactivated.length }
    }
    const { patience } = place
    if (patience === undefined || place.claim !== undefined) return await this.queue.add(run, place)
    return await withPatience((claim) => this.queue.add(run, { ...place, claim }), {
      patience,
      since: this.since,
    })
  }

  private async beside(work: () => void): Promise<void> {
    await (this.current === undefined ? this.early : this.queue).add(work)
  }

  /** Commits tasks that concern the log alone. */
  protected commitLog(tasks: Task[]): Outcome[] | Promise<Outcome[]> {
    const { logFile } = this
    this.mayLag = true
    logFile.exec('begin immediate')
    try {
      const outcomes = tasks.map(({ run }) => ({ done: run() }))
      logFile.exec('commit')
      return outcomes
    } catch (error) {
      if (logFile.inTransaction) logFile.exec('rollback')
      throw error
    }
  }

  /**
   * Commits the log, and then the index. What ends the process in between leaves facts that the index lacks, and so does a disk that
   * is full: they are applied before the next commit, or at the next start.
   */
  protected commit(tasks: Task[]): Outcome[] | Promise<Outcome[]> {
    return this.keep(this.tryOut(tasks))
  }

  /** Runs tasks, and leaves open what they changed in both files. */
  protected tryOut(tasks: Task[]): Trial {
    const { logFile, indexFile, pending } = this
    const { index } = this.current as Opened
    if (this.mayLag) this.applyMissing()
    this.mayLag = true
    const trial = { mark: index.mark(), totals: pending.mark() }
    try {
      logFile.exec('begin immediate')
      indexFile.exec('begin immediate')
      const outcomes = tasks.length === 1 ? tasks.map(({ run }) => ({ done: run() })) : this.runEach(tasks)
      return { ...trial, outcomes }
    } catch (error) {
      this.undo(trial)
      throw error
    }
  }

  /**
   * Applies the facts that the index lacks.
   *
   * @param onApplied Gets the pending transactions that may count or be needed because of that.
   */
  protected applyMissing(onApplied: (txids: string[]) => void = () => {}): void {
    const { index, door } = this.current as Opened
    while (applyNext(this.files, index, () => onApplied(door.affected()))) {
      this.commits.raise()
    }
  }

  protected keep(trial: Trial): Outcome[] {
    const { index } = this.current as Opened
    const { outcomes } = trial
    try {
      this.logFile.exec('commit')
      index.flush()
      this.indexFile.exec('commit')
      this.mayLag = false
      return outcomes
    } catch (error) {
      this.undo(trial)
      // The log may have been committed.
      index.touch()
      throw error
    } finally {
      this.commits.raise()
    }
  }

  protected undo({ mark, totals }: Omit<Trial, 'outcomes'>): void {
    const { logFile, indexFile, pending } = this
    const { index, door } = this.current as Opened
    for (const file of [logFile, indexFile]) if (file.inTransaction) file.exec('rollback')
    index.restore(mark)
    pending.restore(totals)
    door.takeOutcome()
  }

  /** Runs tasks, each in a savepoint of its own, so that one that fails takes nobody with it. */
  private runEach(tasks: Task[]): Outcome[] {
    const { logFile, indexFile, pending } = this
    const { index, door } = this.current as Opened
    const files = [logFile, indexFile]
    return tasks.map(({ run }): Outcome => {
      for (const file of files) file.run('savepoint task')
      const [mark, totals] = [index.mark(), pending.mark()]
      try {
        const done = run()
        for (const file of files) file.run('release task')
        return { done }
      } catch (failed) {
        // A full disk may end the whole transaction.
        if (files.some((file) => !file.inTransaction)) throw failed
        for (const file of files) file.exec('rollback to task; release task')
        index.restore(mark)
        pending.restore(totals)
        door.takeOutcome()
        return { failed }
      }
    })
  }
}

function isWhole(file: Sql): boolean {
  try {
    return file.get('pragma quick_check(1)')?.quick_check === 'ok'
  } catch {
    return false
  }
}
