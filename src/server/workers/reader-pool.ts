import cluster, { type Worker } from 'node:cluster'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Logger } from 'pino'
import { StartError } from '../config/errors.js'
import type { StoreChange } from '../store/caching-store.js'
import type { IndexStatus } from '../store/index-maintenance.js'
import { logRelayed } from '../submission/large-submissions.js'
import type { ProcessMetrics } from '../telemetry/metrics.js'
import type { FromReader, Notice, ReaderSetup, ToReader } from './messages.js'
import type { SharedCounts } from './read-counts.js'

/** Has libuv let other processes accept between two connections; otherwise one would take all that wait. */
const ONE_AT_A_TIME = { UV_TCP_SINGLE_ACCEPT: '1' }
/** How often readers are checked, in milliseconds; at every so many checks, a reader has to acknowledge a ping. */
const CHECKING = 500
const PING = 10
/**
 * After so many checks without an acknowledgement a reader is killed. Checks are counted and not time: after the machine was
 * suspended, a reader has time to respond.
 */
const MAX_MISSED = 8
/**
 * How long the answer to a plain write waits for readers to drop what it outdates, in milliseconds. They do so within one, unless
 * the machine has more to do than it can.
 */
const PUBLISH_WITHIN = 1000
/** How long readers may take to send their metrics, in milliseconds. */
const MEASURE_WITHIN = 1000
/** How long a reader may take to listen, in milliseconds. */
const START_WITHIN = 60_000
/** A reader that ends sooner is replaced after a pause, which doubles each time, in milliseconds. */
const SHORT_LIFE = 10_000
const FIRST_PAUSE = 100
const LONGEST_PAUSE = 10_000
/** The longest pause while no reader is left, and nobody is answered, in milliseconds. */
const LONGEST_OUTAGE = 1000
/** How long readers have beyond their own grace to end, in milliseconds. */
const END_WITHIN = 2000

export interface ReaderPoolOptions {
  /** The compiled `reader-process`. */
  program: URL
  /** How many readers there are. */
  count: number
  logger: Logger
}

/** What readers are given once the store is open. */
export interface ServingOptions {
  setup: () => ReaderSetup
  counts: SharedCounts
}

/** The processes that answer readers. The process that writes starts, informs, replaces and ends them. */
export class ReaderPool {
  private readonly readers = new Set<Reader>()
  private serving: ServingOptions | undefined
  private isFinishing = false
  private lastNotice: Promise<void> = Promise.resolve()
  /** How many readers in a row have ended early. */
  private failures = 0
  private checks = 0
  private checking: NodeJS.Timeout | undefined
  private onFailure: (reason: string) => void = () => {}
  private onListening: ((address: AddressInfo) => void) | undefined

  /**
   * Starts the first of them: it loads its modules while the store is being opened. The others start when it answers, as they
   * would only take the processor from it.
   */
  constructor(private readonly options: ReaderPoolOptions) {
    // Readers accept connections themselves: one that does not respond takes none, and this process may be busy.
    cluster.schedulingPolicy = cluster.SCHED_NONE
    cluster.setupPrimary({ exec: fileURLToPath(options.program), args: [], serialization: 'advanced' })
    this.fork()
  }

  get wanted(): number {
    return this.options.count
  }

  /** How many readers answer. */
  get running(): number {
    return [...this.readers].filter(({ isListening }) => isListening).length
  }

  /** How many requests they have answered, as far as they said. */
  get answered(): number {
    return [...this.readers].reduce((sum, { answered }) => sum + answered, 0)
  }

  /**
   * Has the readers open the store and listen.
   *
   * @returns Where the first of them listens, as soon as it does.
   * @throws StartError if it cannot.
   */
  async serve(serving: ServingOptions): Promise<AddressInfo> {
    this.serving = serving
    const address = new Promise<AddressInfo>((resolve, reject) => {
      this.onFailure = (reason) => reject(new StartError(reason))
      this.onListening = resolve
    })
    for (const reader of this.readers) this.open(reader)
    this.checking = setInterval(() => this.check(), CHECKING).unref()
    try {
      return await address
    } catch (error) {
      this.kill()
      throw error
    } finally {
      this.onFailure = () => {}
    }
  }

  /** Has the readers drop what a write outdates. Resolves when no reader answers what was true before. */
  publish(change: StoreChange): Promise<void> {
    return this.notify({ kind: 'changed', change })
  }

  /** Resolves when the readers know of the state of the index. */
  setIndex(index: IndexStatus): Promise<void> {
    return this.notify({ kind: 'index', index })
  }

  /** Resolves when readers know of every write so far, or one of them takes too long. */
  async published(): Promise<void> {
    const patience = new AbortController()
    await Promise.race([
      this.lastNotice,
      sleep(PUBLISH_WITHIN, undefined, { signal: patience.signal }).catch(() => {}),
    ])
    patience.abort()
  }

  /** The metrics of the readers that respond. */
  async measure(): Promise<ProcessMetrics[]> {
    const all = await Promise.all([...this.readers].map((reader) => reader.measure()))
    return all.filter((each) => each !== undefined)
  }

  /** Has the readers finish the requests in flight, and end. @param grace How long those may take, in milliseconds. */
  async finish(grace: number): Promise<void> {
    this.isFinishing = true
    clearInterval(this.checking)
    const killing = setTimeout(() => this.kill(), grace + END_WITHIN)
    await Promise.all(
      [...this.readers].map(async (reader) => {
        // One that does not listen yet has nobody to answer.
        if (reader.isWaitedFor) reader.send({ kind: 'finish' })
        else reader.kill()
        await reader.ended
      }),
    )
    clearTimeout(killing)
  }

  /** Ends the readers at once. */
  kill(): void {
    this.isFinishing = true
    clearInterval(this.checking)
    for (const reader of this.readers) reader.kill()
  }

  private notify(notice: Notice): Promise<void> {
    const all = [...this.readers].map((reader) => reader.notify(notice))
    this.lastNotice = Promise.all(all).then(() => {})
    return this.lastNotice
  }

  private fork(): void {
    const reader = new Reader(cluster.fork(ONE_AT_A_TIME))
    this.readers.add(reader)
    reader.worker.on('message', (message: FromReader) => this.handle(reader, message))
    void reader.ended.then((how) => this.replace(reader, how))
  }

  /** Once the reader is loaded and the store is open. */
  private open(reader: Reader): void {
    if (this.serving !== undefined && reader.isLoaded)
      reader.send({ kind: 'open', setup: this.serving.setup() })
  }

  private handle(reader: Reader, message: FromReader): void {
    const { logger } = this.options
    const { pid } = reader
    switch (message.kind) {
      case 'loaded':
        reader.isLoaded = true
        this.open(reader)
        break
      case 'opened':
        reader.isWaitedFor = true
        reader.send({ kind: 'listen' })
        break
      case 'listening':
        reader.isListening = true
        this.listens(message.address)
        break
      case 'failed':
        // It ends the start, which says why.
        if (this.onListening === undefined)
          logger.error({ reader: pid, reason: message.reason }, 'a reader cannot start')
        this.onFailure(message.reason)
        break
      case 'acknowledged':
        reader.acknowledge(message)
        break
      case 'measured':
        reader.measured(message.id, message.metrics)
        break
      case 'reads wanted': {
        const { id, client } = message
        void this.serving?.counts.grant(client).then((grant) => reader.send({ kind: 'granted', id, grant }))
        break
      }
      case 'reads returned':
        void this.serving?.counts.takeBack(message.client, message)
        break
      case 'logged':
        logRelayed({ ...message.record, reader: pid }, logger)
    }
  }

  private listens(address: AddressInfo): void {
    this.onListening?.(address)
    // Only the first time: a reader that ends later is replaced.
    if (this.onListening !== undefined) while (this.readers.size < this.options.count) this.fork()
    this.onListening = undefined
  }

  /** Starts another reader instead of one that has ended. */
  private async replace(reader: Reader, how: string): Promise<void> {
    this.readers.delete(reader)
    if (this.isFinishing) return
    this.onFailure(`a process that answers readers ${how}`)
    this.failures = performance.now() - reader.since < SHORT_LIFE ? this.failures + 1 : 0
    const longest = this.readers.size === 0 ? LONGEST_OUTAGE : LONGEST_PAUSE
    const pause = this.failures < 2 ? 0 : Math.min(FIRST_PAUSE * 2 ** this.failures, longest)
    this.options.logger.error({ reader: reader.pid, pause }, `a reader ${how}; it is replaced`)
    await sleep(pause, undefined, { ref: false })
    if (!this.isFinishing) this.fork()
  }

  private check(): void {
    this.checks++
    for (const reader of this.readers) {
      const isStuck = !reader.isListening && performance.now() - reader.since > START_WITHIN
      if (reader.missed >= MAX_MISSED || isStuck) {
        this.options.logger.error({ reader: reader.pid }, 'a reader does not respond; it is killed')
        reader.kill()
      } else if (reader.isWaitedFor && reader.isOverdue) reader.missed++
      if (this.checks % PING === 0) void reader.notify({ kind: 'ping' })
    }
  }
}

/** One of the processes. */
class Reader {
  readonly since = performance.now()
  /** How it ended, as the rest of a sentence. */
  readonly ended: Promise<string>
  isLoaded = false
  /** Whether writes wait for it: before, it has nothing to drop. */
  isWaitedFor = false
  isListening = false
  /** At how many checks in a row it owed an acknowledgement. */
  missed = 0
  /** How many requests it had answered at its last acknowledgement. */
  answered = 0
  private readonly waiting = new Map<number, () => void>()
  private readonly measuring = new Map<number, (metrics: ProcessMetrics | undefined) => void>()
  private nextId = 0

  constructor(readonly worker: Worker) {
    // A message that cannot be sent: the process is ending.
    worker.on('error', () => {})
    this.ended = new Promise((resolve) => {
      worker.once('exit', (code: number | null, signal: string | null) => {
        this.isListening = false
        for (const done of this.waiting.values()) done()
        for (const done of this.measuring.values()) done(undefined)
        resolve(signal === null ? `ended with code ${code}` : `was ended by ${signal}`)
      })
    })
  }

  get pid(): number | undefined {
    return this.worker.process.pid
  }

  get isOverdue(): boolean {
    return this.waiting.size > 0
  }

  send(message: ToReader): void {
    if (this.worker.isConnected()) this.worker.send(message)
  }

  /** Resolves when it has acknowledged a notice, or has ended. */
  notify(notice: Notice): Promise<void> {
    const id = this.nextId++
    this.send({ ...notice, id })
    if (!this.isWaitedFor || this.worker.isDead()) return Promise.resolve()
    return new Promise((resolve) => {
      this.waiting.set(id, resolve)
    })
  }

  acknowledge({ id, answered }: { id: number; answered: number }): void {
    this.missed = 0
    this.answered = answered
    this.waiting.get(id)?.()
    this.waiting.delete(id)
  }

  /** Undefined if it does not respond. */
  async measure(): Promise<ProcessMetrics | undefined> {
    if (!this.isListening) return undefined
    const id = this.nextId++
    this.send({ kind: 'measure', id })
    return await new Promise((resolve) => {
      const patience = setTimeout(() => this.measured(id, undefined), MEASURE_WITHIN).unref()
      this.measuring.set(id, (metrics) => {
        clearTimeout(patience)
        resolve(metrics)
      })
    })
  }

  measured(id: number, metrics: ProcessMetrics | undefined): void {
    this.measuring.get(id)?.(metrics)
    this.measuring.delete(id)
  }

  kill(): void {
    this.worker.process.kill('SIGKILL')
  }
}
