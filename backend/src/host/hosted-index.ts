import { LRUCache } from 'lru-cache'
import { removeDatabase } from '../facts/folder.js'
import { answeredWithin } from '../graph/answered-within.js'
import { isDamage, StoreUnavailableError } from '../graph/errors.js'
import { sha256 } from '../graph/native-hash.js'
import type { OutputAdmittedByTopic, RootChecker, SubmitMode } from '../graph/overlay-interfaces.js'
import { type BeefContents, type ReadBeef, readBeef } from '../graph/read-beef.js'
import type { HostDatabase } from '../host/host-database.js'
import { BeefError } from '../protocol/beef.js'
import { equalBytes, toHex } from '../protocol/bytes.js'
import { messageOf } from '../protocol/coded-error.js'
import { monotonic } from '../protocol/monotonic.js'
import type { Outpoint } from '../protocol/outpoint.js'
import { TOPICS, topicNames } from '../protocol/profile.js'
import { FactStore } from '../read/fact-store.js'
import { hostRules, OtherTreeError, pinHostTree, recentBeefs, withSources } from '../read/host-index.js'
import { Reader } from '../read/reader.js'
import { storeFiles } from '../writer/local-writer.js'
import type { Writer } from '../writer/writer.js'
import { type EngineTables, missed, type OpenEngine } from './engine-tables.js'
import { connectionOf, nameOf, openHostLog } from './host-database.js'
import { type HostFolder, takeFolder } from './host-folder.js'
import { HostWriter } from './host-writer.js'
import { completed, recordBeef, recordEviction, unproven } from './record.js'
import { Spool, type Submission } from './spool.js'
import { type Verdict, Verification } from './verification.js'

/** Options of a program; for each, the first service of a database that sets it decides. */
export interface HostOptions {
  /** The storage of the host's engine, where it can be reached. */
  openEngine?: OpenEngine | undefined
  /** Checks proofs of transactions that the engine has not verified, or cannot be asked about. */
  chainTracker?: RootChecker | undefined
  /** Called with errors after which work is retried; by default, a line is written to standard error. */
  onFailure?: ((error: unknown) => void) | undefined
  /** What decides which proofs count, unless that is set in this database already: `headers`, `tracker` or `scripts-only`. */
  tracker?: string | undefined
}

/** How long an answer waits for an index that is being opened or derived, in milliseconds. */
const READY_WITHIN = 5000
/** Delay before another attempt to open it. */
const OPEN_AGAIN = 2000
/** An index that nobody has used yet is opened after this delay: the host's other services are configured by then. */
const OPEN_AFTER = 1000
/** How long a submission waits for its hook before the engine is asked about it, and the longest pause between two questions. */
const WAIT = { first: 1000, longest: 60_000 }
/** How often the engine is asked about a submission, over some ten minutes. One that it has not applied by then, it has refused. */
const MOST_CHECKS = 14
/** How long a submission waits for its hook where the engine cannot be asked. */
const VERIFY_AFTER = 10_000
/** About how many submissions the engine is asked at once. */
const ASKED_AT_ONCE = 200
/** How many BEEFs from hooks are remembered as recorded. */
const REMEMBERED = 1000
/** How many transactions are remembered as refused. */
const REFUSED_REMEMBERED = 10_000
/** After this many failed verifications in a row, the rest waits: probably the chain tracker is down. */
const MOST_FAILURES = 3

/** The setting of a log that decides which proofs count. */
const TRACKER = 'tracker'
const APPLIED_TO = [...topicNames(TOPICS.names), ...topicNames(TOPICS.ordinals)]

/** A submission that no hook has confirmed yet. */
interface Waiting {
  /** When it is checked again, and from when it is verified here if the engine cannot be asked (`monotonic`). */
  due: number
  verifyFrom: number
  checks: number
  /** Whether topic managers have seen only one BEEF of it: then that is the one which the engine verifies. */
  isOnly: boolean
  /** Whether the engine of this process has said that it has verified it. */
  isVerified: boolean
  /**
   * Whether the engine may have accepted it unverified: of what a peer sends, engines from 0.6 on verify the last transaction
   * alone, and may show those before it to topic managers in a mode that is otherwise verified. For submissions that an earlier
   * process left, the mode is unknown.
   */
  isDoubtful: boolean
  /** The BEEF that the engine has verified, if it has passed that on. */
  verified?: number[]
}

/** The outcome of a check: there is nothing left to do, the submission waits, or it could not be verified yet. */
type Outcome = 'recorded' | 'refused' | 'waits' | 'unverified'

/** The index of a host, one for each of its databases in a process. It follows the host's engine. */
export class HostedIndex {
  readonly store: FactStore
  /** How many services use it. */
  users = 0
  /** The jobs that this process seeks to do for all that share the log. */
  private jobs: readonly string[] | undefined
  private folder: HostFolder | undefined
  private spool: Spool | undefined
  private files: HostWriter | undefined
  private isOpen = false
  /** Reads by the connection of the open index. */
  private readonly reader = new Reader()
  private attempt: Promise<void> | undefined
  private readonly waiting = new Map<string, Waiting>()
  private readonly brought = new LRUCache<string, Promise<void>>({ max: REMEMBERED })
  private readonly seen = new WeakSet<BeefContents>()
  /** The latest waiting submissions, as topic managers have seen them. */
  private readonly recent = recentBeefs()
  private readonly verification = new Verification()
  /** Submissions that were not verified, and stay in doubt if a hook names them again. */
  private readonly refused = new LRUCache<string, true>({
    maxSize: REFUSED_REMEMBERED,
    sizeCalculation: () => 1,
  })
  private engine: Promise<EngineTables | undefined> | undefined
  private isEngineKnown = false
  private isStoredElsewhere = false
  private timer: NodeJS.Timeout | undefined
  private working: Promise<void> | undefined
  private verifying: Promise<void> | undefined
  private hasCaughtUp = false
  private isClosed = false
  private reported = ''

  constructor(
    private readonly database: HostDatabase,
    readonly options: HostOptions,
  ) {
    const opened = async (): Promise<void> => {
      if (!this.isOpen || this.isOutdated) await this.answering()
    }
    const writer = async (): Promise<Writer> => {
      await opened()
      return (this.files as HostWriter).writer
    }
    const store = new FactStore({
      reader: this.reader,
      writer: {
        record: async (...asked) => await (await writer()).record(...asked),
        change: async (...asked) => await (await writer()).change(...asked),
        note: async (...asked) => await (await writer()).note(...asked),
        setting: async (...asked) => await (await writer()).setting(...asked),
      },
      opened,
    })
    const submissions = {
      see: (beef: ReadBeef, mode?: SubmitMode) => this.see(beef, mode),
      refuse: (txid: string) => this.refuse(txid),
    }
    this.store = Object.assign(store, { submissions })
    this.schedule(OPEN_AFTER)
  }

  get needsTransactions(): boolean {
    return !this.isEngineKnown || this.isStoredElsewhere
  }

  async admitted(payload: OutputAdmittedByTopic): Promise<void> {
    if (payload.mode === 'whole-tx') await this.verified(Uint8Array.from(payload.atomicBEEF))
    else await this.once(payload.txid, () => this.bringStored(payload.txid))
  }

  private async verified(beef: Uint8Array): Promise<void> {
    await this.once(toHex(sha256(beef)), () => this.bring(beef))
  }

  /** Runs `bring` once for a key, as a hook is called for each output and each service. */
  private async once(key: string, bring: () => Promise<void>): Promise<void> {
    const { brought } = this
    const recorded = brought.get(key) ?? bring().catch(() => void brought.delete(key))
    brought.set(key, recorded)
    await recorded
  }

  async spentBy(txid: string, beef?: number[]): Promise<void> {
    const wait = this.wait(txid)
    wait.isVerified = true
    if (beef !== undefined) wait.verified ??= beef
  }

  async evicted(outpoint: Outpoint): Promise<void> {
    try {
      await this.answering()
      await recordEviction(this.store, outpoint)
    } catch (error) {
      this.spooled().evict(outpoint)
      this.report(error)
      this.schedule(WAIT.first)
    }
  }

  /** Seeks these jobs, and no others, for all processes that share the log (`Writer.seekJobs`). */
  seekJobs(jobs: readonly string[]): void {
    this.jobs = jobs
    this.files?.seekJobs(jobs)
  }

  /** Whether this process does a job. The caller needs the index: if its thread has ended, it is opened again. */
  isMine(job: string): boolean {
    if (this.isOpen) return this.files?.writer.status.jobs?.includes(job) === true
    this.open().catch(() => {})
    return false
  }

  /**
   * Resolves when the index has all facts, and the requested tracker is set.
   *
   * @throws StoreUnavailableError if that takes long, or whatever keeps the index from opening.
   */
  async ready(): Promise<void> {
    const { tracker } = this.options
    await this.answering()
    // It was opened before anybody asked for a tracker.
    if (tracker === undefined || (await this.store.settings.get(TRACKER)) !== undefined) return
    await this.reopen()
    await this.answering()
  }

  /** The tables of the engine, once it has made them; opened once. `close` closes them. */
  async openEngine(): Promise<EngineTables | undefined> {
    this.engine ??= this.options.openEngine?.()
    const opening = this.engine
    const engine = await opening?.catch((error: unknown) => {
      this.engine = undefined
      throw error
    })
    if (engine === undefined && this.engine === opening) this.engine = undefined
    this.isEngineKnown = engine !== undefined
    return engine
  }

  /**
   * Finishes what is running, once all services are closed. Submissions that are not recorded yet are recorded after the next start.
   */
  async close(): Promise<void> {
    this.users--
    if (this.users > 0 || this.isClosed) return
    this.isClosed = true
    this.isOpen = false
    clearTimeout(this.timer)
    indexes.delete(this.database)
    await this.files?.close()
    await this.attempt?.catch(() => {})
    await this.working
    await this.engine?.then((engine) => engine?.close()).catch(() => {})
    this.spool?.close()
    this.folder?.release()
  }

  /** Keeps a BEEF that topic managers see: pending, and not verified by anybody. */
  private see(beef: ReadBeef, mode: SubmitMode | undefined): void {
    const { seen } = this
    const { txid } = beef.subject
    const isNew = !seen.has(beef)
    seen.add(beef)
    const known = this.waiting.get(txid)
    const wait = known ?? (isNew ? this.wait(txid, { isOnly: true }) : undefined)
    if (wait !== undefined) wait.isDoubtful ||= mode !== undefined && mode !== 'current-tx'
    if (!isNew) return
    if (known !== undefined) known.isOnly = false
    this.recent.set(txid, beef)
    try {
      this.spooled().see(txid, beef.bytes)
    } catch (error) {
      this.report(error)
    }
  }

  private refuse(txid: string): void {
    if (this.isInDoubt(txid)) this.refused.set(txid, true)
    if (this.spool?.get(txid)?.verified === undefined) this.forget(txid)
  }

  private wait(txid: string, { isLeft = false, isOnly = false } = {}): Waiting {
    const now = monotonic()
    const [due, verifyFrom] = isLeft ? [now, now] : [now + WAIT.first, now + VERIFY_AFTER]
    const first = { due, verifyFrom, checks: 0, isOnly, isVerified: false, isDoubtful: false }
    const wait = this.waiting.get(txid) ?? first
    wait.isDoubtful ||= isLeft
    this.waiting.set(txid, wait)
    this.schedule(WAIT.first)
    return wait
  }

  private giveUp(txid: string): void {
    this.refused.set(txid, true)
    this.forget(txid)
  }

  private forget(txid: string): void {
    this.recent.delete(txid)
    this.spool?.delete(txid)
    this.waiting.delete(txid)
  }

  /** Records a transaction as the engine has stored it. @throws what went wrong: the engine is asked again. */
  private async bringStored(txid: string): Promise<void> {
    const seen = this.seenOf(txid)
    if (seen !== undefined && this.waiting.get(txid)?.isOnly) return await this.bring(seen.bytes)
    let stored: Uint8Array | undefined
    try {
      stored = await (await this.openEngine())?.beefOf(txid)
    } catch (error) {
      this.wait(txid)
      this.report(error)
      throw error
    }
    if (stored !== undefined) return await this.bring(stored)
    // The engine stores elsewhere. From now on, hooks bring whole transactions, with their proofs.
    this.isStoredElsewhere = true
    if (seen === undefined) throw new Error(`the engine verified ${txid} but did not store it`)
    if (this.isInDoubt(txid)) return await this.bring(seen.bytes)
    await this.record(unproven(seen))
    this.forget(txid)
  }

  private seenOf(txid: string): ReadBeef | undefined {
    const recent = this.recent.get(txid)
    const spooled = recent === undefined ? this.spool?.get(txid)?.seen : undefined
    return recent ?? (spooled && readBeef(spooled))
  }

  /** Records a BEEF that the engine has verified, or keeps it until that is possible. @throws what went wrong: it is kept. */
  private async bring(bytes: Uint8Array): Promise<void> {
    const { subject } = readBeef(bytes)
    if (this.isInDoubt(subject.txid) && (await this.verdict(bytes)) !== 'yes') return
    await this.bringVerified(bytes)
  }

  private async bringVerified(bytes: Uint8Array): Promise<void> {
    const beef = readBeef(bytes)
    const { txid } = beef.subject
    try {
      await this.record(completed(beef, this.seenOf(txid)))
    } catch (error) {
      this.spooled().verify(txid, bytes)
      this.wait(txid)
      this.report(error)
      throw error
    }
    this.forget(txid)
  }

  private async record(beef: BeefContents): Promise<void> {
    const rules = hostRules(this.store)
    await this.answering()
    if ((await this.files?.deriveBy(rules)) === false) {
      await this.reopen()
      await this.answering()
    }
    await recordBeef(this.store, withSources(beef), this.files?.tree)
  }

  /** @throws Error if no folder can be used. */
  private spooled(): Spool {
    if (this.isClosed) throw new Error('the index is closed')
    this.folder ??= takeFolder(nameOf(this.database))
    if (this.spool === undefined) {
      this.spool = new Spool(this.folder.path)
      // Submissions left by an earlier process.
      for (const txid of this.spool.txids()) this.wait(txid, { isLeft: true })
    }
    return this.spool
  }

  private async answering(): Promise<void> {
    if (this.isOpen && this.isOutdated) await this.reopen()
    const error = (): Error => new StoreUnavailableError(new Error('the index is being opened or rebuilt'))
    await answeredWithin(READY_WITHIN, () => this.open(), { error })
  }

  /** Whether the log has other rules than when it was opened. */
  private get isOutdated(): boolean {
    return this.files?.writer.status.outdated !== undefined
  }

  private open(): Promise<void> {
    if (this.isClosed) return Promise.reject(new Error('the index is closed'))
    if (this.attempt !== undefined) return this.attempt
    const attempt = this.openFiles()
    this.attempt = attempt
    attempt.catch((error: unknown) => {
      this.report(error)
      // Trying again does not help against another tree.
      if (error instanceof OtherTreeError) return
      setTimeout(() => {
        if (this.attempt === attempt) this.attempt = undefined
      }, OPEN_AGAIN).unref()
    })
    return attempt
  }

  private async openFiles(): Promise<void> {
    this.spooled()
    const { path: folder } = this.folder as HostFolder
    const log = await openHostLog(this.database)
    // A copy, as they may change meanwhile.
    const rules = { ...hostRules(this.store) }
    try {
      const connection = connectionOf(this.database)
      const onEnd = (cause: unknown): Promise<void> => this.reopen(cause)
      const files = await HostWriter.open({ folder, log, connection, rules, onEnd })
      this.files = files
      await files.writer.logRead
      if (this.jobs !== undefined) files.seekJobs(this.jobs)
      const { settings } = new FactStore(files)
      files.tree = await pinHostTree(settings, rules.deployment)
      const { tracker } = this.options
      // A tracker that is set already stays, and so does the index.
      if (tracker !== undefined) await settings.set(TRACKER, tracker)
      if (!(await files.deriveBy(rules))) throw new Error('other services were configured just now')
      this.isOpen = true
      this.reader.attach(files.reader)
      this.schedule(0)
    } catch (error) {
      await this.files?.close()
      const { log: logFile, index } = storeFiles(folder)
      // Everything is derived again, except what the log does not have.
      if (isDamage(error)) for (const file of [logFile, index]) removeDatabase(file)
      throw error
    }
  }

  /** Closes the index; the next use opens it again. */
  private async reopen(cause?: unknown): Promise<void> {
    if (cause !== undefined) this.report(cause)
    this.isOpen = false
    this.reader.attach(undefined)
    if (!this.isClosed) this.attempt = undefined
    await this.files?.close()
  }

  private schedule(milliseconds: number): void {
    if (this.isClosed || (this.timer !== undefined && milliseconds > 0)) return
    clearTimeout(this.timer)
    this.timer = setTimeout(() => {
      this.timer = undefined
      this.working ??= this.work().finally(() => {
        this.working = undefined
        if (this.waiting.size > 0 || !this.hasCaughtUp) this.schedule(WAIT.first)
      })
    }, milliseconds).unref()
  }

  /** Brings submissions that hooks have not brought. */
  private async work(): Promise<void> {
    try {
      await this.answering()
      const spool = this.spooled()
      const engine = await this.openEngine()
      const now = monotonic()
      const due = [...this.waiting].flatMap(([txid, { due }]) => (due <= now ? [txid] : []))
      const isDoubtful = (txid: string): boolean => engine === undefined || this.isInDoubt(txid)
      // The chain tracker may take long to answer, and peers decide how often it is asked.
      this.verifying ??= this.verify(due.filter(isDoubtful), engine).finally(() => {
        this.verifying = undefined
      })
      await this.check(
        due.filter((txid) => !isDoubtful(txid)),
        engine,
      )
      // Evictions come after the outputs that they evict.
      if (this.hasCaughtUp)
        for (const outpoint of spool.evictions()) {
          await recordEviction(this.store, outpoint)
          spool.forgetEviction(outpoint)
        }
      spool.flush()
    } catch (error) {
      if (!this.isClosed) this.report(error)
    }
  }

  private async verify(txids: readonly string[], engine: EngineTables | undefined): Promise<void> {
    try {
      await this.catchUp(engine)
      await this.check(txids, engine)
    } catch (error) {
      if (!this.isClosed) this.report(error)
    }
  }

  /** Runs once after each start: the engine may have been killed before it called its hooks. */
  private async catchUp(engine: EngineTables | undefined): Promise<void> {
    if (this.hasCaughtUp) return
    if (engine !== undefined)
      for (const topic of Object.values(TOPICS))
        for await (const beef of missed({ engine, topic, index: this.store })) {
          if (this.isClosed) return
          const { txid } = readBeef(beef).subject
          if (this.chainTracker === undefined) {
            await this.verified(beef)
            continue
          }
          if (this.refused.has(txid) || this.store.transactions.has(txid)) continue
          this.wait(txid, { isLeft: true })
          // Throws while the chain tracker is away, which ends the pass: transactions that it has passed do not come again.
          const verdict = await this.verdict(beef)
          if (verdict === 'yes') await this.bringVerified(beef).catch(() => {})
          else if (verdict === 'no') this.giveUp(txid)
        }
    this.hasCaughtUp = true
  }

  /** Records those of these submissions that are verified by now. */
  private async check(txids: readonly string[], engine: EngineTables | undefined): Promise<void> {
    for (let at = 0, failures = 0; at < txids.length; at += ASKED_AT_ONCE) {
      const some = txids.slice(at, at + ASKED_AT_ONCE)
      const known = await engine?.applied(some, APPLIED_TO)
      for (const txid of some) {
        if (this.isClosed || failures === MOST_FAILURES) return
        // A hook has brought it meanwhile.
        if (!this.waiting.has(txid)) continue
        const submission = this.spool?.get(txid) ?? { txid, seen: undefined, verified: undefined }
        const outcome = await this.outcomeOf(submission, { engine, isApplied: known?.has(txid) })
        failures = outcome === 'unverified' ? failures + 1 : 0
        if (outcome === 'refused') this.giveUp(txid)
        else if (outcome === 'recorded') this.forget(txid)
        else this.postpone(submission, outcome)
      }
    }
  }

  /** @param about.isApplied Whether the engine has verified and accepted it; undefined if it cannot be asked. */
  private async outcomeOf(
    { txid, seen, verified }: Submission,
    { engine, isApplied }: { engine: EngineTables | undefined; isApplied: boolean | undefined },
  ): Promise<Outcome> {
    if (isApplied === false && verified === undefined) return 'waits'
    const contents = seen && readBeef(seen)
    try {
      const wait = this.waiting.get(txid)
      // An engine keeps no BEEF of a transaction without admitted outputs.
      const own = wait?.isOnly && wait.isVerified ? seen : undefined
      const trusted =
        verified ?? wait?.verified ?? (isApplied ? (own ?? (await engine?.beefOf(txid))) : undefined)
      const isTaken = isApplied || trusted !== undefined
      if (verified === undefined && isTaken && this.isInDoubt(txid))
        return await this.outcomeIfValid([trusted, seen])
      if (trusted !== undefined) await this.record(completed(readBeef(trusted), contents))
      else if (isApplied && contents !== undefined) await this.record(unproven(contents))
      else if (isApplied === undefined && seen !== undefined) {
        const isDue = monotonic() >= (this.waiting.get(txid)?.verifyFrom ?? 0)
        return isDue ? await this.outcomeIfValid([seen]) : 'waits'
      } else return 'waits'
      return 'recorded'
    } catch (error) {
      this.report(error)
      return 'waits'
    }
  }

  /** Records the first valid one of some BEEFs of a submission. */
  private async outcomeIfValid(beefs: readonly (number[] | Uint8Array | undefined)[]): Promise<Outcome> {
    const [first, second] = beefs.flatMap((beef) => (beef === undefined ? [] : [readBeef(beef).bytes]))
    if (first === undefined) return 'waits'
    const isOne = second === undefined || equalBytes(first, second)
    let outcome: Outcome = 'refused'
    for (const bytes of isOne ? [first] : [first, second]) {
      const verdict = await this.verdict(bytes).catch((error: unknown) => this.report(error))
      if (verdict === 'unknown') outcome = 'waits'
      if (verdict === undefined) return 'unverified'
      if (verdict !== 'yes') continue
      await this.bringVerified(bytes)
      return 'recorded'
    }
    return outcome
  }

  private get chainTracker(): RootChecker | undefined {
    return this.options.chainTracker ?? hostRules(this.store).chainTracker
  }

  /** Whether a submission must be verified here, whatever the engine says. */
  private isInDoubt(txid: string): boolean {
    return (
      this.chainTracker !== undefined &&
      (this.waiting.get(txid)?.isDoubtful === true || this.refused.has(txid))
    )
  }

  /**
   * Whether a submission is valid; `unknown` without a chain tracker, or if that may be behind. @throws what the chain tracker throws.
   */
  private async verdict(bytes: Uint8Array): Promise<Verdict> {
    const { chainTracker } = this
    if (chainTracker === undefined) return 'unknown'
    try {
      return await this.verification.of(readBeef(bytes), chainTracker)
    } catch (error) {
      if (error instanceof BeefError) return 'no'
      throw error
    }
  }

  private postpone({ txid, verified }: Submission, outcome: Outcome): void {
    const wait = this.waiting.get(txid)
    if (wait === undefined) return
    // While the chain tracker is away, nothing is given up.
    if (outcome === 'waits' || wait.checks < MOST_CHECKS - 1) wait.checks++
    if (wait.checks >= MOST_CHECKS && verified === undefined) this.forget(txid)
    else wait.due = monotonic() + Math.min(WAIT.first * 2 ** wait.checks, WAIT.longest)
  }

  /** Reports an error; to standard error, the same one only once in a row. */
  report(error: unknown): void {
    // Drivers add their statement, with its line breaks.
    const text = messageOf(error).replace(/\s+/g, ' ')
    if (this.options.onFailure !== undefined) this.options.onFailure(error)
    else if (text !== this.reported) process.stderr.write(`minetree: ${text}\n`)
    this.reported = text
  }
}

const indexes = new WeakMap<HostDatabase, HostedIndex>()

/** The index over a host's database, shared by all that the process configures over it. */
export function hostedIndex(database: HostDatabase, options: HostOptions = {}): HostedIndex {
  const known = indexes.get(database) ?? new HostedIndex(database, {})
  indexes.set(database, known)
  for (const [name, value] of Object.entries(options))
    (known.options as Record<string, unknown>)[name] ??= value
  return known
}
