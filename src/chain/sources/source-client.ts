import { setTimeout } from 'node:timers/promises'
import pLimit from 'p-limit'
import pRetry, { AbortError } from 'p-retry'
import type { Logger } from 'pino'
import type { Pool } from 'undici'
import { messageOf } from '../../../backend/src/protocol/coded-error.js'
import { monotonic } from '../../../backend/src/protocol/monotonic.js'
import { SourceError } from '../../client/errors.js'
import { type BoundedAnswer, requestBounded } from './bounded-request.js'
import { ChainSourceError, isOutage, type LastError } from './errors.js'
import { Pace } from './pace.js'
import { RateLimit } from './rate-limit.js'

export interface SourceClientOptions {
  /** The URL below which the routes of the service are. */
  url: string
  /** For status and messages; the origin of the URL by default. */
  name?: string
  /** The most requests in flight at once. */
  parallel: number
  /** The most requests a second; no limit by default. */
  rate?: number
  /** Instead of a rate: the limit that it shares with another client of the same service. */
  limit?: RateLimit | undefined
  /** The timeout of one request, in milliseconds. */
  timeout?: number
  /** How often a request is tried, the first time included. */
  tries?: number
  /** The pause before the second try, in milliseconds; it doubles before each further one. */
  firstPause?: number
  /** The first rest after a failure, in milliseconds; it doubles with each further failure until an answer comes. */
  firstRest?: number
  /** The longest rest of a source that does not answer, in milliseconds; 10 minutes by default. */
  longestRest?: number
  /** How long a question waits for a source that rests, in milliseconds; beyond that it fails. */
  patience?: number
  /** The pace below which the source rests. */
  pace?: Pace
  /** Aborts all requests. */
  signal?: AbortSignal
  /** The clock for rests, in milliseconds since 1970. */
  now?: () => number
  logger?: Pick<Logger, 'info' | 'warn'>
}

/** How a source has done so far. */
export interface SourceStatus {
  /** Its kind and the origin of its URL, without keys. */
  name: string
  state: 'ok' | 'resting'
  /** Since the start. */
  requests: number
  /** Requests without a usable answer. */
  failures: number
  /** When it is asked again, in milliseconds since 1970. */
  restingUntil?: number
  lastError?: LastError
}

/** How to read the answer to a question. */
export interface Query<Answer> {
  /** The longest body to read. */
  maxBytes: number
  /** The timeout, in milliseconds; by default that of the client. */
  timeout?: number
  /** The error code for a longer one; `BAD_ANSWER` by default. */
  tooLarge?: 'TOO_LARGE' | 'BAD_ANSWER'
  /** @throws ChainSourceError `BAD_ANSWER` */
  read(body: Uint8Array): Answer
  /** Sent with POST, as JSON; without it, the question is a GET. */
  json?: unknown
  /** Whether it lets other questions go first. */
  isPatient?: boolean
  /** What other statuses than 200 say; `undefined` for 404 by default. */
  statuses?: Readonly<Record<number, Answer>>
}

const DEFAULT_TIMEOUT = 30_000
const DEFAULT_TRIES = 6
const DEFAULT_PAUSE = 500
const MAX_PAUSE = 30_000
const DEFAULT_REST = 1000
/** The longest rest, also if the service asks for a longer one, in milliseconds. */
const MAX_REST = 600_000
/** The rest of a source that answers too slowly: another one is better. */
const SLOW_REST = 60_000
/** How many requests in flight are left to questions that are not patient: a transaction and its proof. */
const LEFT = 2
const DEFAULT_PATIENCE = 30_000
/** After so many unusable answers in a row, a source rests. */
const MAX_BAD_ANSWERS = 5
/** The least time between two warnings of one source, in milliseconds: it may fail now and then for hours. */
const QUIET = 60_000
/** The longest invalid answer that is requested again, in bytes. */
const MAX_RETRIED_BYTES = 1024 * 1024

/**
 * Sends requests to a chain source over HTTP: within bounds of length and time, at most so many at once and a second, and
 * without redirects or decompression. A request that fails, or whose answer is invalid, is retried with a growing pause.
 *
 * A source that does not answer, asks to be left alone (`Retry-After`), answers too slowly or returns nothing but invalid data
 * rests: it is not asked for a while, which grows until it answers again. Questions wait for the end of a short rest, and fail
 * at once during a long one.
 */
export class SourceClient {
  readonly name: string
  /** Requests since the start, and how many of them were retries. */
  readonly asked = { requests: 0, again: 0 }
  private readonly origin: string
  /** The path below which the routes are, which may be a key: messages do not have it. */
  private readonly base: string
  private readonly queue: ReturnType<typeof pLimit>
  /** Of the questions that are patient: they leave some requests to others. */
  private readonly patient: ReturnType<typeof pLimit>
  private readonly limit: RateLimit | undefined
  /**
   * Opened with the first request, as the library takes a tenth of a start. No limit of its own: a connection is not free at the
   * moment of its answer, so the next request would wait for it.
   */
  private connections: Promise<Pool> | undefined
  private readonly pace: Pace
  private readonly stop = new AbortController()
  private readonly signal: AbortSignal
  private failures = 0
  /** When it last gave a usable answer, as `monotonic()` tells; undefined if it never did. */
  answeredAt: number | undefined
  /** Unusable answers since the last usable one. */
  private badAnswers = 0
  private lastError: LastError | undefined
  /** The error that was counted last. */
  private noted: unknown
  /** Failed attempts since the last successful one. */
  private failedAttempts = 0
  /** How often it rested since the last answer. */
  private rests = 0
  private restsUntil = Number.NEGATIVE_INFINITY
  /** The last warning, and whether it answered since. */
  private warned: { at: number; isOver: boolean } | undefined
  /** The time of day, for what is shown, and a clock for durations. */
  private readonly now: () => number
  private readonly clock: () => number

  constructor(private readonly options: SourceClientOptions) {
    const { url, name, parallel, rate, limit, pace, signal, now } = options
    const { origin, pathname } = new URL(url)
    this.origin = origin
    this.base = pathname.replace(/\/+$/, '')
    this.name = name ?? origin
    this.queue = pLimit(parallel)
    this.patient = pLimit(Math.max(1, parallel - LEFT))
    this.limit = limit ?? (rate === undefined ? undefined : new RateLimit(rate))
    this.pace = pace ?? new Pace()
    this.now = now ?? Date.now
    this.clock = now ?? monotonic
    this.signal = signal === undefined ? this.stop.signal : AbortSignal.any([signal, this.stop.signal])
  }

  get status(): SourceStatus {
    const { name, failures, lastError, rest } = this
    const isResting = rest > 0
    return {
      ...{ name, state: isResting ? 'resting' : 'ok', requests: this.asked.requests, failures },
      ...(isResting && { restingUntil: this.now() + rest }),
      ...(lastError && { lastError }),
    }
  }

  /** Whether it answers nothing any more. */
  get isClosed(): boolean {
    return this.signal.aborted
  }

  /** How much longer it rests, in milliseconds. */
  get rest(): number {
    return Math.max(0, this.restsUntil - this.clock())
  }

  /**
   * Asks a question.
   *
   * @param path What follows the URL, beginning with a slash.
   * @returns What `query` makes of the answer; undefined for a 404 of which it makes nothing.
   * @throws ChainSourceError
   */
  async ask<Answer>(path: string, query: Query<Answer>): Promise<Answer | undefined> {
    const ask = (): Promise<Answer | undefined> => this.askInTurn(path, query)
    return await (query.isPatient ? this.patient(ask) : ask())
  }

  private async askInTurn<Answer>(path: string, query: Query<Answer>): Promise<Answer | undefined> {
    const { tries = DEFAULT_TRIES, firstPause = DEFAULT_PAUSE } = this.options
    return await this.queue(async () => {
      try {
        return await pRetry(() => this.askOnce(path, query), {
          retries: tries - 1,
          minTimeout: firstPause,
          maxTimeout: MAX_PAUSE,
          randomize: true,
          onFailedAttempt: ({ retriesLeft }) => {
            if (retriesLeft > 0) this.asked.again++
          },
          signal: this.signal,
        })
      } catch (error) {
        if (isOutage(error)) this.restAfter(error)
        throw error
      }
    })
  }

  /**
   * Runs work that takes several answers, which have to fit together. After a failure the source rests, up to 10 minutes and twice
   * as long after each further one until work succeeds.
   *
   * @param options.isFault Which errors are the fault of the source, beside ChainSourceErrors.
   * @param options.isPart Whether other work follows that has to succeed as well: then it rests as after any question.
   * @returns undefined after a failure.
   * @throws what is not its fault.
   */
  async attempt<Result>(
    work: () => Promise<Result>,
    { isFault, isPart = false }: { isFault: (error: unknown) => error is Error; isPart?: boolean },
  ): Promise<Result | undefined> {
    try {
      const result = await work()
      if (!isPart) this.failedAttempts = 0
      return result
    } catch (error) {
      if (this.signal.aborted || !(error instanceof ChainSourceError || isFault(error))) throw error
      if (error !== this.noted) this.note(error)
      if (isPart) this.restAfter(error)
      else this.restFor(this.restOf(this.failedAttempts++, MAX_REST), error)
      return undefined
    }
  }

  /** Ends its rest: it is asked again now. */
  endRest(): void {
    this.restsUntil = Number.NEGATIVE_INFINITY
  }

  /**
   * Reports that an answer proved wrong later, as when a spender does not spend.
   *
   * @returns The error, to be thrown if no other source knows better.
   */
  disbelieve(error: ChainSourceError): ChainSourceError {
    this.note(error)
    return error
  }

  /**
   * Waits until it does not rest.
   *
   * @throws ChainSourceError `NO_ANSWER` if it rests for longer than `patience` milliseconds.
   */
  async rested(patience: number): Promise<void> {
    for (let { rest } = this; rest > 0; { rest } = this) {
      if (rest > patience) throw this.restError(rest)
      await setTimeout(rest, undefined, { signal: this.signal })
    }
  }

  /** Aborts all requests and closes the connections. */
  async close(): Promise<void> {
    this.stop.abort(new ChainSourceError('NO_ANSWER', `${this.name} is no longer asked`))
    await (await this.connections)?.destroy()
  }

  private async connect(): Promise<Pool> {
    const { Pool } = await import('undici')
    const { origin, signal } = this
    const connections = new Pool(origin)
    const end = (): void => void connections.destroy(signal.reason)
    if (signal.aborted) end()
    else signal.addEventListener('abort', end, { once: true })
    return connections
  }

  private restError(rest: number): ChainSourceError {
    const why = this.lastError === undefined ? '' : `: ${this.lastError.message}`
    return new RestError('NO_ANSWER', `${this.name} rests for ${Math.ceil(rest / 1000)} seconds${why}`)
  }

  private async askOnce<Answer>(path: string, query: Query<Answer>): Promise<Answer | undefined> {
    await this.turn({ isPatient: query.isPatient === true })
    this.pace.begin()
    try {
      return await this.answerTo(path, query)
    } catch (error) {
      const inner = error instanceof AbortError ? error.originalError : error
      if (inner instanceof ChainSourceError && !this.signal.aborted) this.note(inner)
      throw error
    } finally {
      this.pace.end()
      if (!this.pace.isKept()) this.restAsSlow()
    }
  }

  /** Waits until a request may be sent. While it waits for a permit, another answer may have put the source to rest. */
  private async turn({ isPatient }: { isPatient: boolean }): Promise<void> {
    const { patience = DEFAULT_PATIENCE } = this.options
    do {
      await this.rested(patience).catch((error: unknown) => {
        throw error instanceof ChainSourceError ? new AbortError(error) : error
      })
      await this.limit?.permit({ isPatient, signal: this.signal })
    } while (this.rest > 0)
  }

  private async answerTo<Answer>(path: string, query: Query<Answer>): Promise<Answer | undefined> {
    const { tooLarge = 'BAD_ANSWER', read, statuses } = query
    this.asked.requests++
    const { status, retryAfter, body } = await this.send(path, query).catch((cause: unknown) => {
      if (!(cause instanceof SourceError)) throw cause
      if (cause.code !== 'TOO_LARGE') throw new ChainSourceError('NO_ANSWER', cause.message, { cause })
      // It would be as long the next time.
      throw new AbortError(new ChainSourceError(tooLarge, cause.message, { cause }))
    })
    if (status === 200) {
      const answer = readOnce(body, read)
      this.answered(body.length, answer)
      return answer
    }
    if (status === 404 || (statuses !== undefined && status in statuses)) {
      const answer = statuses?.[status]
      this.answered(0, answer)
      return answer
    }
    const error = new ChainSourceError('NO_ANSWER', `${this.origin}${path} answered ${status}`)
    if (status !== 429 && status < 500) throw new AbortError(error)
    const requested = requestedPause(retryAfter, this.now())
    if (requested > 0) this.restFor(Math.min(requested, MAX_REST), error)
    throw error
  }

  private async send(path: string, { maxBytes, json, ...query }: Query<unknown>): Promise<BoundedAnswer> {
    const shown = this.origin + path
    const { timeout = this.options.timeout ?? DEFAULT_TIMEOUT } = query
    this.connections ??= this.connect()
    return await requestBounded(await this.connections, {
      ...{ path: this.base + path, shown, timeout, maxBytes },
      ...(json === undefined
        ? { method: 'GET', headers: { accept: '*/*' } }
        : {
            method: 'POST',
            headers: { accept: '*/*', 'content-type': 'application/json' },
            body: JSON.stringify(json),
          }),
    })
  }

  /** @param answer Undefined if it has nothing to say: a server that knows nothing at all is none to wait for. */
  private answered(bytes: number, answer: unknown): void {
    this.pace.answered(bytes)
    if (answer !== undefined) this.answeredAt = monotonic()
    this.badAnswers = 0
    this.rests = 0
    if (this.warned?.isOver !== false || this.rest > 0) return
    this.warned.isOver = true
    this.options.logger?.info(`${this.name} answers again`)
  }

  private note(error: Error): void {
    this.failures++
    this.noted = error
    this.lastError = { at: this.now(), message: error.message }
    if (
      error instanceof ChainSourceError &&
      error.code === 'BAD_ANSWER' &&
      ++this.badAnswers >= MAX_BAD_ANSWERS
    )
      this.restAfter(error)
  }

  /** Rests longer each time. Questions that were open together fail together, which is one failure. */
  private restAfter(error: unknown): void {
    if (error instanceof RestError || this.rest > 0 || this.signal.aborted) return
    this.restFor(this.restOf(this.rests, this.options.longestRest), error)
  }

  /** How long it rests after so many rests. */
  private restOf(rests: number, longest = MAX_REST): number {
    const { firstRest = DEFAULT_REST } = this.options
    return Math.min(longest, firstRest * 2 ** rests)
  }

  private restAsSlow(): void {
    if (this.rest > 0 || this.signal.aborted) return
    const error = new ChainSourceError('NO_ANSWER', `${this.name} is too slow: ${this.pace.rule}`)
    this.note(error)
    this.pace.reset()
    this.restFor(Math.min(MAX_REST, SLOW_REST * 2 ** this.rests), error)
  }

  private restFor(milliseconds: number, error: unknown): void {
    const now = this.clock()
    const until = now + milliseconds
    if (until <= this.restsUntil) return
    // Further failures are in the status; a line for each would fill the log.
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

/** @throws AbortError around the error of `read`, if the answer is too long to request it again. */
function readOnce<Answer>(body: Uint8Array, read: (body: Uint8Array) => Answer): Answer {
  try {
    return read(body)
  } catch (error) {
    throw body.length > MAX_RETRIED_BYTES && error instanceof Error ? new AbortError(error) : error
  }
}

/** A source was not asked, because it rests. */
class RestError extends ChainSourceError {}

/** `Retry-After` in milliseconds: seconds, or a date (RFC 9110 10.2.3). 0 if it is missing or malformed. */
function requestedPause(value: string | undefined, now: number): number {
  if (value === undefined) return 0
  const pause = /^\d+$/.test(value.trim()) ? Number(value) * 1000 : Date.parse(value) - now
  return Number.isNaN(pause) ? 0 : Math.max(0, pause)
}
