import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Sql } from '../facts/connection.js'
import { LocalLog } from '../facts/local-log.js'
import { makeLog } from '../facts/log-file.js'
import { pinOf, SETTINGS } from '../facts/registers.js'
import { Pending, State } from '../facts/state.js'
import type { AdmissionOptions } from '../graph/admission-rules.js'
import { isDamage, isDamagedFile } from '../graph/errors.js'
import type { TransactionRecord } from '../graph/records.js'
import type { Index } from '../index/apply.js'
import { INDEX_VERSION } from '../index/schema.js'
import { fromHex } from '../protocol/bytes.js'
import { steadyTime } from '../protocol/monotonic.js'
import type { Outpoint } from '../protocol/outpoint.js'
import {
  applyNext,
  catchUp,
  type Derivation,
  emptyIndex,
  makeIndex,
  openIndex,
  trackerOf,
} from './catch-up.js'
import { Door, type RecordTransactions } from './door.js'
import { type Outcome, SharedNumber, type Task, WriteQueue } from './queue.js'
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

export function storeFiles(folder: string): { log: string; index: string } {
  return { log: join(folder, 'log.db'), index: join(folder, `index-${INDEX_VERSION}.db`) }
}

/** The folder of images made from content, which can be removed at any time. */
export function imagesFolder(folder: string): string {
  return join(folder, 'images')
}

const INDEX_FILES = /^index-(\d+)\.db/

/**
 * Commits of the log are synced; the index can be derived again. A page that many commits change is copied out of the WAL once
 * for all of them, so a long WAL saves work.
 */
const LOG_PRAGMAS = `
pragma journal_mode = wal; pragma synchronous = full; pragma cache_size = -8192;
pragma temp_store = memory; pragma wal_autocheckpoint = 4000;`
const INDEX_PRAGMAS = `
pragma journal_mode = wal; pragma synchronous = normal; pragma cache_size = -16384;
pragma temp_store = memory; pragma wal_autocheckpoint = 4000;`

/** Delay before another attempt to bring the index up to date, in milliseconds. */
export const RETRY_DELAY = 2000

/** The place of writes that need only the log, and do not wait for the index. */
const EARLY: Place = { isEarly: true }

/** The result of a task and what it changed, once it is committed. */
interface Done<Result> extends Written {
  result: Result
  admitted: Recorded['admitted']
}

/** State in memory, to restore when the files are rolled back. */
interface Mark {
  index: ReturnType<Index['mark']> | undefined
  totals: ReturnType<Pending['mark']>
}

/** Tasks that were run but are not committed yet. */
interface Trial extends Mark {
  outcomes: Outcome[]
}

interface Opened {
  index: Index
  door: Door
}

/**
 * The writer in this thread. It has the only connections that write, and runs each task without yielding. Tasks that need the
 * index wait until it has all facts of the log; its rules may be given later ({@link deriveBy}).
 */
export class LocalWriter implements Writer {
  readonly opened: Promise<void>
  readonly logRead: Promise<void> = Promise.resolve()
  readonly since = new SharedNumber()
  readonly commits = new SharedNumber()
  private readonly folder: string
  protected readonly logFile: Sql
  protected readonly indexFile: Sql
  protected readonly log: LocalLog
  private readonly files: Derivation
  protected readonly state: State
  protected readonly pending: Pending
  protected readonly queue = new WriteQueue(
    (tasks) => this.commit(tasks),
    this.since,
    (error) => this.mendIndex(error),
  )
  protected current: Opened | undefined
  /** Whether the log may have facts that the index lacks. */
  protected mayLag = true
  protected admission: AdmissionOptions | undefined
  /** Whether the index was emptied and is not complete again: readers cannot use it. */
  protected isEmptied = false
  private isDamaged = false
  private progress: WriterStatus = { state: 'rebuilding', done: 0 }
  private readonly listeners: ((status: WriterStatus) => void)[] = []
  private deriving: Promise<void> = Promise.resolve()
  protected readonly closing = new AbortController()
  private reportOpened: (() => void) | undefined
  protected reportFailure: ((error: unknown) => void) | undefined

  /**
   * Opens the files in a folder, or creates them.
   *
   * @param make Creates the tables of the log.
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
    makeIndex(this.indexFile)
    this.files = { log: this.log, indexFile: this.indexFile }
    this.queue.hold()
    // A thread that replaces another one never repeats a count.
    this.commits.value = steadyTime()
    this.opened = new Promise((resolve, reject) => {
      this.reportOpened = resolve
      this.reportFailure = reject
    })
    // Callers that await it get the error; nobody has to.
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
          // A full disk may have room again; damage stays.
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
    const { result, ...written } = await this.queue.add(
      () => this.atDoor((door) => door.record(transactions, options)),
      place,
    )
    return { ...written, ...result }
  }

  async change<Method extends DoorMethod>(
    method: Method,
    ...args: Parameters<Door[Method]>
  ): Promise<Changed<Method>> {
    const run = (door: Door): unknown => (door[method] as (...args: unknown[]) => unknown)(...args)
    const { result, reorganised } = await this.queue.add(() => this.atDoor(run))
    return { reorganised, result: result as ReturnType<Door[Method]> }
  }

  async note<Method extends StateMethod>(method: Method, ...args: Parameters<State[Method]>): Promise<void> {
    await this.queue.add(() => {
      ;(this.state[method] as (...args: unknown[]) => void)(...args)
      if (method === 'postpone' && this.current !== undefined)
        this.state.forgetFound((each) => this.isMissing(each))
    }, EARLY)
  }

  async setting(name: string, value: string, from?: string): Promise<Written> {
    const run = (): Written => {
      const { current, log } = this
      if (!SETTINGS.has(name)) this.state.set(name, value)
      else if (current !== undefined) return this.atDoor((door) => door.pin(name, value, from))
      else {
        const pin = pinOf(log, { name, value, from })
        if (pin !== undefined) log.insert(pin)
      }
      return { reorganised: 0 }
    }
    const { reorganised } = await this.queue.add(run, EARLY)
    return { reorganised }
  }

  /** Does nothing: without other gateways, all jobs are its own. */
  async seekJobs(_jobs: readonly string[]): Promise<void> {}

  /** Finishes running tasks, and closes the files. Tasks that wait for rules are refused. */
  async close(): Promise<void> {
    this.closing.abort()
    await this.deriving
    await this.queue.idle()
    this.queue.refuse(new Error('the writer is closed'))
    this.logFile.close()
    this.indexFile.close()
  }

  /** Whether an active output lacks ancestors. */
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
    this.commits.value++
    this.isEmptied = false
    this.report({ state: 'equal', done: 1 })
    this.queue.release()
    // What they lost to may be gone from the log, or they may count by other rules.
    this.retry(pending.waiting())
  }

  /** Tries pending transactions again, when their turn comes. */
  protected retry(txids: readonly string[]): void {
    if (txids.length > 0) this.queue.add(() => this.current?.door.retryPending(txids)).catch(() => {})
  }

  /** Derives the index again if a write found its file damaged. A damaged log cannot be mended. */
  private mendIndex(error: unknown): unknown {
    if (this.admission === undefined || !isDamagedFile(error) || isWhole(this.indexFile)) return error
    this.isEmptied = true
    this.isDamaged = true
    this.report({ state: 'rebuilding', done: 0 })
    this.deriveBy(this.admission)
    const message = 'the index file is damaged: it is derived again from the log'
    return Object.assign(new Error(message, { cause: error }), { code: 'DAMAGED' })
  }

  protected report(status: WriterStatus): void {
    this.progress = { ...status, ...(this.isEmptied && { isEmptied: true }) }
    for (const listener of this.listeners) listener(this.progress)
  }

  /** Removes indexes of earlier versions, as this one has all facts. One of a later version is kept for when that starts. */
  private removeOldIndexes(): void {
    for (const name of readdirSync(this.folder))
      if (Number(INDEX_FILES.exec(name)?.[1]) < INDEX_VERSION)
        rmSync(join(this.folder, name), { force: true })
  }

  private atDoor<Result>(work: (door: Door) => Result): Done<Result> {
    const { door } = this.current as Opened
    const result = work(door)
    const { admitted, restored, deactivated } = door.takeOutcome()
    return { result, admitted, reorganised: restored.length + deactivated.length }
  }

  /** Tries tasks and commits them. A log in a folder is this writer's own, and accepts everything. */
  protected commit(tasks: Task[]): Outcome[] | Promise<Outcome[]> {
    return this.keep(this.tryOut(tasks))
  }

  /** Runs tasks, and leaves their transactions open. */
  protected tryOut(tasks: Task[]): Trial {
    if (this.mayLag && this.current !== undefined) this.applyMissing(this.current)
    this.mayLag = true
    const mark = this.mark()
    try {
      for (const file of this.written) file.exec('begin immediate')
      if (this.current !== undefined) this.current.door.isAlone = tasks.length === 1
      const outcomes = tasks.length === 1 ? tasks.map(({ run }) => ({ done: run() })) : this.runEach(tasks)
      return { ...mark, outcomes }
    } catch (error) {
      this.undo(mark)
      throw error
    }
  }

  private applyMissing({ index, door }: Opened): void {
    const onApplied = (): void => this.onApplied(door.affected())
    while (applyNext(this.files, index, { onApplied })) this.commits.value++
  }

  /** Gets pending transactions that facts which the index lacked may affect. The writer of those facts has tried them already. */
  protected onApplied(_txids: string[]): void {}

  /**
   * Commits the log, then the index. A crash or a full disk in between leaves facts that the index lacks: they are applied before
   * the next commit, or at the next start.
   */
  protected keep({ outcomes, ...mark }: Trial): Outcome[] {
    const { current } = this
    try {
      // Before the log is committed: after that, only syncing the index can fail.
      current?.index.flush()
      this.logFile.exec('commit')
      if (current !== undefined) {
        this.indexFile.exec('commit')
        this.mayLag = false
      }
      return outcomes
    } catch (error) {
      this.undo(mark)
      // The log may have been committed.
      current?.index.touch()
      throw error
    } finally {
      this.commits.value++
    }
  }

  protected undo(mark: Mark): void {
    for (const file of this.written) if (file.inTransaction) file.exec('rollback')
    this.restore(mark)
  }

  private mark(): Mark {
    return { index: this.current?.index.mark(), totals: this.pending.mark() }
  }

  private restore({ index, totals }: Mark): void {
    if (index !== undefined) this.current?.index.restore(index)
    this.pending.restore(totals)
    this.current?.door.takeOutcome()
  }

  /** The files that tasks change: the log alone while the index is not open. */
  private get written(): Sql[] {
    return this.current === undefined ? [this.logFile] : [this.logFile, this.indexFile]
  }

  /** Runs tasks, each in its own savepoint, so that one that fails affects no other. */
  private runEach(tasks: Task[]): Outcome[] {
    const files = this.written
    return tasks.map(({ run }): Outcome => {
      for (const file of files) file.exec('savepoint task')
      const mark = this.mark()
      try {
        const done = run()
        for (const file of files) file.exec('release task')
        return { done }
      } catch (failed) {
        // A full disk may end the whole transaction.
        if (files.some((file) => !file.inTransaction)) throw failed
        for (const file of files) file.exec('rollback to task; release task')
        this.restore(mark)
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
