import { setMaxListeners } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import PQueue from 'p-queue'
import type { Logger } from 'pino'
import { messageOf } from '../../../backend/src/protocol/coded-error.js'
import { InvalidHeadersError } from '../../../backend/src/protocol/header-rules.js'
import { monotonic } from '../../../backend/src/protocol/monotonic.js'
import { type FetchedAnswer, fetchBounded } from '../../client/bounded-fetch.js'
import { SourceError } from '../../client/errors.js'
import { ChainSourceError, isOutage } from './errors.js'
import type { LastError, SourceStatus } from './status.js'

export interface SourceClientOptions {
  /** The URL that the routes of the service are below. */
  url: string
  /** For status and messages; the origin of the URL by default. */
  name?: string
  /** The most requests a second; no limit by default. All clients of one origin with the same rate share it. */
  rate?: number
  /** The timeout of one request, in milliseconds. */
  timeout?: number
  /** The first rest after a failure, in milliseconds; it doubles with each further failure until the source answers. */
  firstRest?: number
  /** The longest rest of a source that does not answer, in milliseconds; 10 minutes by default. */
  longestRest?: number
  /** Aborts all requests. */
  signal?: AbortSignal
  /** The clock for rests, in milliseconds since 1970. */
  now?: () => number
  logger?: Pick<Logger, 'info' | 'warn'>
}

export interface Query<Answer> {
  /** The longest body to read. */
  maxBytes: number
  /** In milliseconds; by default that of the client. */
  timeout?: number
  /** The error code for a longer body; `BAD_ANSWER` by default. */
  tooLarge?: 'TOO_LARGE' | 'BAD_ANSWER'
  /** @throws ChainSourceError `BAD_ANSWER` */
  read(body: Uint8Array): Answer
  /** Sent with POST, as JSON; without it, the request is a GET. */
  json?: unknown
  /** Whether to skip the queue: for a few questions that follow from another answer. */
  isUrgent?: boolean | undefined
  /** The answers that statuses other than 200 stand for; `undefined` for 404 by default. */
  statuses?: Readonly<Record<number, Answer>>
}

/** The most parallel requests to a service, as in its own clients (`DefaultMaxConcurrentRequests` of b-open-io/go-junglebus). */
const PARALLEL = 8
const DEFAULT_TIMEOUT = 30_000
const DEFAULT_REST = 1000
/** The longest rest, even if the service asks for a longer one, in milliseconds. */
const MAX_REST = 600_000
/** A source rests after this many unusable answers in a row. */
const MAX_BAD_ANSWERS = 5
/** The least time between two warnings about one source, in milliseconds: it may fail now and then for hours. */
const QUIET = 60_000

/**
 * Sends requests to a chain source over HTTP, without redirects: with limits on length, time, parallel requests and rate.
 *
 * A source that does not answer, asks to be left alone (`Retry-After`) or returns nothing but invalid data rests: questions to it
 * fail immediately, for a time that grows until it answers again.
 */
export class SourceClient {
  readonly name: string
  private readonly origin: string
  /** The path that the routes are below. It may be a key, so messages omit it. */
  private readonly base: string
  private readonly queue: PQueue
  private readonly stop = new AbortController()
  private readonly signal: AbortSignal
  private requests = 0
  private failures = 0
  /** When the source last gave a usable answer, by `monotonic()`; undefined if never. */
  answeredAt: number | undefined
  /** Unusable answers since the last usable one. */
  private badAnswers = 0
  private lastError: LastError | undefined
  private noted: unknown
  /** Failed attempts since the last successful one. */
  private failedAttempts = 0
  /** How often the source rested since its last answer. */
  private rests = 0
  private restsUntil = Number.NEGATIVE_INFINITY
  /** When the last warning was logged, and whether the source has answered since. */
  private warned: { at: number; isOver: boolean } | undefined
  /** The time of day, for display, and a clock for durations. */
  private readonly now: () => number
  private readonly clock: () => number

  constructor(private readonly options: SourceClientOptions) {
    const { url, name, rate, signal, now } = options
    const { origin, pathname } = new URL(url)
    this.origin = origin
    this.base = pathname.replace(/\/+$/, '')
    this.name = name ?? origin
    this.queue = queueOf(origin, rate)
    this.now = now ?? Date.now
    this.clock = now ?? monotonic
    this.signal = signal === undefined ? this.stop.signal : AbortSignal.any([signal, this.stop.signal])
    // Each question adds listeners, while it waits and while it is asked.
    setMaxListeners(0, this.signal)
  }

  get status(): SourceStatus {
    const { name, requests, failures, lastError, rest } = this
    const isResting = rest > 0
    return {
      ...{ name, state: isResting ? 'resting' : 'ok', requests, failures },
      ...(isResting && { restingUntil: this.now() + rest }),
      ...(lastError && { lastError }),
    }
  }

  /** Whether it is closed for good. */
  get isClosed(): boolean {
    return this.signal.aborted
  }

  /** The rest that is left, in milliseconds. */
  get rest(): number {
    return Math.max(0, this.restsUntil - this.clock())
  }

  /**
   * Asks a question, once.
   *
   * @param path Appended to the URL; begins with a slash.
   * @returns What `query` reads from the answer; undefined for a 404, unless `query` maps that status.
   * @throws ChainSourceError
   */
  async ask<Answer>(path: string, query: Query<Answer>): Promise<Answer | undefined> {
    const { signal } = this
    this.requireAwake()
    try {
      const priority = query.isUrgent === true ? 1 : 0
      return await this.queue.add(() => this.askNow(path, query), { priority, signal })
    } catch (error) {
      if (signal.aborted) throw signal.reason
      if (error instanceof ChainSourceError && !(error instanceof RestError)) this.note(error)
      if (isOutage(error)) this.restAfter(error)
      throw error
    }
  }

  /**
   * Runs work that needs several answers which fit together. After a failure the source rests, twice as long after each further
   * one, up to 10 minutes, until work succeeds.
   *
   * @param options.isPart Whether other work follows that has to succeed as well: then it rests as after any question.
   * @returns undefined after a failure.
   * @throws errors that are not the fault of the source.
   */
  async attempt<Result>(
    work: () => Promise<Result>,
    { isPart = false }: { isPart?: boolean } = {},
  ): Promise<Result | undefined> {
    try {
      const result = await work()
      if (!isPart) this.failedAttempts = 0
      return result
    } catch (error) {
      const isFault = error instanceof ChainSourceError || error instanceof InvalidHeadersError
      if (this.signal.aborted || !isFault) throw error
      if (error !== this.noted) this.note(error)
      if (isPart) this.restAfter(error)
      else this.restFor(this.restOf(this.failedAttempts++, MAX_REST), error)
      return undefined
    }
  }

  /** Ends its rest, so that it is asked again now. */
  endRest(): void {
    this.restsUntil = Number.NEGATIVE_INFINITY
  }

  /**
   * Reports an answer that proved wrong later, such as a spender that does not spend.
   *
   * @returns The error, to be thrown if no other source knows better.
   */
  disbelieve(error: ChainSourceError): ChainSourceError {
    this.note(error)
    return error
  }

  /** Waits until its rest is over. */
  async rested(): Promise<void> {
    for (let { rest } = this; rest > 0; { rest } = this)
      await setTimeout(rest, undefined, { signal: this.signal })
  }

  /** @throws ChainSourceError `NO_ANSWER` while it is resting. */
  requireAwake(): void {
    const { rest, lastError } = this
    if (rest === 0) return
    const why = lastError === undefined ? '' : `: ${lastError.message}`
    throw new RestError('NO_ANSWER', `${this.name} rests for ${Math.ceil(rest / 1000)} seconds${why}`)
  }

  /** Aborts all requests. */
  close(): void {
    this.stop.abort(new ChainSourceError('NO_ANSWER', `${this.name} is no longer asked`))
  }

  private async askNow<Answer>(path: string, query: Query<Answer>): Promise<Answer | undefined> {
    // Another answer may have put the source to rest while this question was queued.
    this.requireAwake()
    const { tooLarge = 'BAD_ANSWER', statuses } = query
    this.requests++
    const answer = await this.send(path, query).catch((cause: unknown) => {
      if (!(cause instanceof SourceError)) throw cause
      throw new ChainSourceError(cause.code === 'TOO_LARGE' ? tooLarge : 'NO_ANSWER', cause.message, {
        cause,
      })
    })
    const { status, headers, body } = answer
    if (status === 200) return this.answered(query.read(body))
    if (status === 404 || (statuses !== undefined && status in statuses))
      return this.answered(statuses?.[status])
    const error = new ChainSourceError('NO_ANSWER', `${this.origin}${path} answered ${status}`)
    if (status === 429 || status >= 500) {
      const requested = requestedPause(headers.get('retry-after'), this.now())
      if (requested > 0) this.restFor(Math.min(requested, MAX_REST), error)
    }
    throw error
  }

  private async send(path: string, { maxBytes, json, timeout }: Query<unknown>): Promise<FetchedAnswer> {
    const init: RequestInit =
      json === undefined
        ? {}
        : { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(json) }
    return await fetchBounded(this.origin + this.base + path, init, {
      shown: this.origin + path,
      timeout: timeout ?? this.options.timeout ?? DEFAULT_TIMEOUT,
      maxBytes,
      signal: this.signal,
    })
  }

  /** @param answer Undefined if the source has none: a server that never knows anything is not worth waiting for. */
  private answered<Answer>(answer: Answer): Answer {
    if (answer !== undefined) this.answeredAt = monotonic()
    this.badAnswers = 0
    this.rests = 0
    if (this.warned?.isOver === false && this.rest === 0) {
      this.warned.isOver = true
      this.options.logger?.info(`${this.name} answers again`)
    }
    return answer
  }

  private note(error: Error): void {
    this.failures++
    this.noted = error
    this.lastError = { at: this.now(), message: error.message }
    const isBad = error instanceof ChainSourceError && error.code === 'BAD_ANSWER'
    if (isBad && ++this.badAnswers >= MAX_BAD_ANSWERS) this.restAfter(error)
  }

  /** Rests longer each time. Parallel questions that fail together count as one failure. */
  private restAfter(error: unknown): void {
    if (this.rest === 0 && !this.signal.aborted)
      this.restFor(this.restOf(this.rests, this.options.longestRest), error)
  }

  /** The length of the next rest after a number of rests. */
  private restOf(rests: number, longest = MAX_REST): number {
    const { firstRest = DEFAULT_REST } = this.options
    return Math.min(longest, firstRest * 2 ** rests)
  }

  private restFor(milliseconds: number, error: unknown): void {
    const now = this.clock()
    const until = now + milliseconds
    if (until <= this.restsUntil) return
    // Further failures are only in the status: a line for each would fill the log.
    if (this.rests === 0 && now - (this.warned?.at ?? Number.NEGATIVE_INFINITY) >= QUIET) {
      this.warned = { at: now, isOver: false }
      this.options.logger?.warn(
        `${this.name} rests for ${Math.ceil(milliseconds / 1000)} seconds: ${messageOf(error)}`,
      )
    }
    this.rests++
    this.restsUntil = until
  }
}

class RestError extends ChainSourceError {}

/** Requests to each origin, whatever they are for: blocks, headers and missing ancestors may come from one service. */
const queues = new Map<string, PQueue>()

function queueOf(origin: string, rate: number | undefined): PQueue {
  const key = `${origin} ${rate}`
  const queue = queues.get(key) ?? new PQueue({ concurrency: PARALLEL, ...(rate && perSecond(rate)) })
  queues.set(key, queue)
  return queue
}

function perSecond(rate: number) {
  return { intervalCap: Math.max(1, Math.floor(rate)), interval: Math.max(1000, 1000 / rate), strict: true }
}

/** `Retry-After` in milliseconds: seconds, or a date (RFC 9110 10.2.3). 0 if it is missing or malformed. */
function requestedPause(value: string | null, now: number): number {
  if (value === null) return 0
  const pause = /^\d+$/.test(value.trim()) ? Number(value) * 1000 : Date.parse(value) - now
  return Number.isNaN(pause) ? 0 : Math.max(0, pause)
}
