import { setTimeout } from 'node:timers/promises'
import pLimit from 'p-limit'
import pRetry, { AbortError } from 'p-retry'
import { Agent, request } from 'undici'
import type { TransactionRecord } from '../../backend/src/graph/records.js'
import { toHex } from '../../backend/src/protocol/bytes.js'
import { formatOutpoint, type Outpoint } from '../../backend/src/protocol/outpoint.js'
import { readBounded, withinTime } from '../client/bounded-fetch.js'
import { SourceError } from '../client/errors.js'
import { type ChainSource, parseSourced, parseSourcedProof } from './chain-source.js'
import { ChainSourceError } from './errors.js'
import { Pace } from './pace.js'

export interface JungleBusOptions {
  /** `https://junglebus.gorillapool.io`, or another service with its API. */
  url: string
  /** The most requests in flight at once. */
  parallel: number
  /** The timeout of one request, in milliseconds. */
  timeout?: number
  /** How often a request is tried, the first time included. */
  tries?: number
  /** The pause before the second try, in milliseconds; it doubles before each further one. */
  firstPause?: number
  /** The pace below which the source is given up. */
  pace?: Pace
  /** Aborts all requests. */
  signal?: AbortSignal
}

const DEFAULT_TIMEOUT = 30_000
const DEFAULT_TRIES = 6
const DEFAULT_PAUSE = 500
const MAX_PAUSE = 30_000
/** The longest `Retry-After` to wait for, in milliseconds: beyond that the user can run the command again. */
const MAX_REQUESTED_PAUSE = 30_000
/** The longest invalid answer that is requested again, in bytes. */
const MAX_RETRIED_BYTES = 1024 * 1024
/** A spend is 32 bytes; of anything else, no more than this is read. */
const MAX_SPEND_BYTES = 1024
/** The path of one transaction has some 2 KiB; a source may return one for all transactions of a block. */
const MAX_PROOF_BYTES = 4 * 1024 * 1024

/**
 * JungleBus of GorillaPool, over HTTP:
 *
 * - `GET /v1/transaction/get/<txid>/bin`: the raw transaction; 404 if it is unknown.
 * - `GET /v1/transaction/proof/<txid>/bin`: its merkle path (BUMP, BRC-74); 404 if it is unmined.
 * - `GET /v1/txo/spend/<txid>_<vout>`: the 32 bytes of the spender's txid, in display order; empty if it is unspent.
 *
 * This is not documented: it is what its public clients request and expect (b-open-io/1sat-sdk, `packages/cli`;
 * b-open-io/1sat-stack and b-open-io/go-junglebus; the crawler of shruggr/opns-overlay). A 404 for a spend does not say that
 * the output is unspent.
 *
 * Requests that fail or return invalid data are retried with a growing pause. All requests wait while a busy source asks for
 * it (`Retry-After`).
 */
export class JungleBusSource implements ChainSource {
  /** Requests since the start, and how many of them were retries. */
  readonly asked = { requests: 0, again: 0 }
  private readonly url: string
  private readonly options: JungleBusOptions
  private readonly queue: ReturnType<typeof pLimit>
  /** No limit of its own: a connection is not free at the moment of its answer, so the next request would wait for it. */
  private readonly connections = new Agent()
  /** When the source may be asked again, in milliseconds since 1970. */
  private busyUntil = 0
  private readonly pace: Pace

  constructor(options: JungleBusOptions) {
    this.url = options.url.replace(/\/+$/, '')
    this.options = options
    this.queue = pLimit(options.parallel)
    this.pace = options.pace ?? new Pace()
  }

  async transaction(
    txid: string,
    { maxBytes }: { maxBytes: number },
  ): Promise<TransactionRecord | undefined> {
    // Both at once: hardly any transaction lacks a proof.
    const proving = this.ask(`/v1/transaction/proof/${txid}/bin`, {
      maxBytes: MAX_PROOF_BYTES,
      read: (bump) => parseSourcedProof(txid, bump),
    })
    // If the other fails first, nothing awaits this one.
    proving.catch(() => undefined)
    const record = await this.ask(`/v1/transaction/get/${txid}/bin`, {
      maxBytes,
      tooLarge: 'TOO_LARGE',
      read: (raw) => parseSourced(txid, raw),
    })
    const proof = await proving
    return record && { ...record, ...(proof && { proof }) }
  }

  async spenderOf(outpoint: Outpoint): Promise<string | undefined> {
    const shown = formatOutpoint(outpoint)
    const answer = await this.ask(`/v1/txo/spend/${shown}`, {
      maxBytes: MAX_SPEND_BYTES,
      read: (bytes) => {
        if (bytes.length !== 0 && bytes.length !== 32)
          throw new ChainSourceError('BAD_ANSWER', `${this.url} returned no txid for the spend of ${shown}`)
        return { spender: bytes.length === 0 ? undefined : toHex(bytes) }
      },
    })
    if (answer === undefined) throw new ChainSourceError('BAD_ANSWER', `${this.url} does not know ${shown}`)
    return answer.spender
  }

  /** @returns undefined for a 404. */
  private async ask<Answer>(path: string, query: Query<Answer>): Promise<Answer | undefined> {
    const { tries = DEFAULT_TRIES, firstPause = DEFAULT_PAUSE, signal } = this.options
    return await this.queue(() =>
      pRetry(() => this.askInTime(this.url + path, query), {
        retries: tries - 1,
        minTimeout: firstPause,
        maxTimeout: MAX_PAUSE,
        randomize: true,
        onFailedAttempt: ({ retriesLeft }) => {
          if (retriesLeft > 0) this.asked.again++
        },
        signal,
      }),
    )
  }

  /** Tries once, unless the source has been too slow: every other request would wait as long. */
  private async askInTime<Answer>(url: string, query: Query<Answer>): Promise<Answer | undefined> {
    this.pace.begin()
    try {
      return await this.askOnce(url, query)
    } finally {
      this.pace.end()
      this.requirePace()
    }
  }

  /** @throws AbortError of a ChainSourceError `NO_ANSWER`. */
  private requirePace(pause = 0): void {
    if (this.pace.isKept(pause)) return
    throw new AbortError(new ChainSourceError('NO_ANSWER', `${this.url} is too slow: ${this.pace.rule}`))
  }

  private async askOnce<Answer>(
    url: string,
    { maxBytes, tooLarge = 'BAD_ANSWER', read }: Query<Answer>,
  ): Promise<Answer | undefined> {
    const { signal } = this.options
    const pause = this.busyUntil - Date.now()
    if (pause > 0) {
      this.requirePace(pause)
      await setTimeout(pause, undefined, { signal })
    }
    this.asked.requests++
    const { status, retryAfter, body } = await this.get(url, maxBytes).catch((cause: unknown) => {
      if (!(cause instanceof SourceError)) throw cause
      if (cause.code !== 'TOO_LARGE') throw new ChainSourceError('NO_ANSWER', cause.message, { cause })
      // It would be as long the next time.
      throw new AbortError(new ChainSourceError(tooLarge, cause.message, { cause }))
    })
    if (status === 200) {
      const answer = readOnce(body, read)
      this.pace.answered(body.length)
      return answer
    }
    if (status === 404) {
      this.pace.answered(0)
      return undefined
    }
    if (status === 429 || status >= 500) {
      this.backOff(url, retryAfter)
      throw new ChainSourceError('NO_ANSWER', `${url} answered ${status}`)
    }
    throw new AbortError(new ChainSourceError('NO_ANSWER', `${url} answered ${status}`))
  }

  /** Not with `fetch`: a crawl sends several requests for each transaction, and would spend most of its time in streams. */
  private async get(url: string, maxBytes: number): Promise<Answered> {
    const { timeout = DEFAULT_TIMEOUT, signal: given } = this.options
    return await withinTime(url, { timeout, ...(given && { signal: given }) }, async (signal) => {
      const headers = { accept: 'application/octet-stream' }
      const answer = await request(url, { dispatcher: this.connections, headers, signal })
      const length = Number(answer.headers['content-length'])
      return {
        status: answer.statusCode,
        retryAfter: [answer.headers['retry-after'] ?? []].flat()[0],
        body: await readBounded(answer.body, { url, maxBytes, length }),
      }
    })
  }

  /** Delays all requests until a busy source allows them. */
  private backOff(url: string, retryAfter: string | undefined): void {
    const pause = requestedPause(retryAfter)
    if (pause > MAX_REQUESTED_PAUSE) {
      const seconds = Math.ceil(pause / 1000)
      throw new AbortError(
        new ChainSourceError('NO_ANSWER', `${url} asks to wait ${seconds} seconds, which is too long`),
      )
    }
    this.busyUntil = Math.max(this.busyUntil, Date.now() + pause)
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

/** How to read an answer. */
interface Query<Answer> {
  maxBytes: number
  /** The error code for a longer answer; `BAD_ANSWER` by default. */
  tooLarge?: 'TOO_LARGE' | 'BAD_ANSWER'
  read: (body: Uint8Array) => Answer
}

interface Answered {
  status: number
  retryAfter: string | undefined
  body: Uint8Array
}

/** `Retry-After` in milliseconds: seconds, or a date (RFC 9110 10.2.3). 0 if it is missing or malformed. */
function requestedPause(value: string | undefined): number {
  if (value === undefined) return 0
  const pause = /^\d{1,9}$/.test(value.trim()) ? Number(value) * 1000 : Date.parse(value) - Date.now()
  return Number.isNaN(pause) ? 0 : Math.max(0, pause)
}
