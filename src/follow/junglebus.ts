import { setTimeout } from 'node:timers/promises'
import pLimit from 'p-limit'
import pRetry, { AbortError } from 'p-retry'
import { Agent, request } from 'undici'
import type { TransactionRecord } from '../../backend/src/graph/records.js'
import { toHex } from '../../backend/src/protocol/bytes.js'
import { formatOutpoint, type Outpoint } from '../../backend/src/protocol/outpoint.js'
import { readBounded, withinTime } from '../client/bounded-fetch.js'
import { SourceError } from '../client/errors.js'
import { type ChainSource, ChainSourceError, readSourced, readSourcedProof } from './chain-source.js'
import { Pace } from './pace.js'

export interface JungleBusOptions {
  /** `https://junglebus.gorillapool.io`, or whatever speaks as it does. */
  url: string
  /** How many requests are under way at once. */
  parallel: number
  /** How long one answer may take, in milliseconds. */
  timeout?: number
  /** How often each question is asked before it is given up, the first time included. */
  tries?: number
  /** How long to wait before the second time, in milliseconds; twice as long before each further one. */
  firstPause?: number
  /** How slow it may be before it is given up. */
  pace?: Pace
  /** Ends all that is under way. */
  signal?: AbortSignal
}

const DEFAULT_TIMEOUT = 30_000
const DEFAULT_TRIES = 6
const DEFAULT_PAUSE = 500
const MAX_PAUSE = 30_000
/** The longest that a source may ask to be left alone, in milliseconds: whoever runs the command can come again. */
const MAX_REQUESTED_PAUSE = 30_000
/** The longest answer that is asked for once more where it does not hold, in bytes. */
const MAX_ASKED_AGAIN = 1024 * 1024
/** A spend is 32 bytes; this is read of whatever else it may be. */
const MAX_SPEND_BYTES = 1024
/** A path of one transaction is some 2 KiB; one of a whole block may come. */
const MAX_PROOF_BYTES = 4 * 1024 * 1024

/**
 * JungleBus of GorillaPool, over HTTP:
 *
 * - `GET /v1/transaction/get/<txid>/bin`: the raw transaction; 404 where it is not known.
 * - `GET /v1/transaction/proof/<txid>/bin`: its merkle path (BUMP, BRC-74); 404 where it is in no block.
 * - `GET /v1/txo/spend/<txid>_<vout>`: the 32 bytes of the spender's txid, in shown order; nothing where it is unspent.
 *
 * It has no page that says so: these are what its public clients ask, and how they read it (b-open-io/1sat-sdk,
 * `packages/cli`; b-open-io/1sat-stack and b-open-io/go-junglebus; the crawler of shruggr/opns-overlay). A 404 for a spend is no
 * word about the output, and is not read as one.
 *
 * What fails or does not hold is asked again, later each time; a source that is busy is left alone as long as it says
 * (`Retry-After`), by all questions.
 */
export class JungleBusSource implements ChainSource {
  /** What was asked since the start, and how much of it once more. */
  readonly asked = { requests: 0, again: 0 }
  private readonly url: string
  private readonly options: JungleBusOptions
  private readonly inTurn: ReturnType<typeof pLimit>
  /** Not bounded once more: one that has just answered is not free at once, and whoever waited for it would wait. */
  private readonly connections = new Agent()
  /** Until when the source asked to be left alone, in milliseconds since 1970. */
  private busyUntil = 0
  private readonly pace: Pace

  constructor(options: JungleBusOptions) {
    this.url = options.url.replace(/\/+$/, '')
    this.options = options
    this.inTurn = pLimit(options.parallel)
    this.pace = options.pace ?? new Pace()
  }

  async transaction(
    txid: string,
    { maxBytes }: { maxBytes: number },
  ): Promise<TransactionRecord | undefined> {
    // Both at once: the one hardly ever comes without the other.
    const proving = this.ask(`/v1/transaction/proof/${txid}/bin`, {
      maxBytes: MAX_PROOF_BYTES,
      read: (bump) => readSourcedProof(txid, bump),
    })
    // Where the other fails first, nobody waits for this one.
    proving.catch(() => undefined)
    const record = await this.ask(`/v1/transaction/get/${txid}/bin`, {
      maxBytes,
      tooLarge: 'TOO_LARGE',
      read: (raw) => readSourced(txid, raw),
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
  private async ask<Answer>(path: string, told: NewRecords<Answer>): Promise<Answer | undefined> {
    const { tries = DEFAULT_TRIES, firstPause = DEFAULT_PAUSE, signal } = this.options
    return await this.inTurn(() =>
      pRetry(() => this.askInTime(this.url + path, told), {
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

  /** Asks once more, unless the source has been too slow for that: others would wait as long. */
  private async askInTime<Answer>(url: string, told: NewRecords<Answer>): Promise<Answer | undefined> {
    this.pace.begin()
    try {
      return await this.askOnce(url, told)
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
    { maxBytes, tooLarge = 'BAD_ANSWER', read }: NewRecords<Answer>,
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
      // It would be as long again.
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
      this.leaveAlone(url, retryAfter)
      throw new ChainSourceError('NO_ANSWER', `${url} answered ${status}`)
    }
    throw new AbortError(new ChainSourceError('NO_ANSWER', `${url} answered ${status}`))
  }

  /** Not by `fetch`: a crawl asks several times for each transaction, and most of its work would be that of its streams. */
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

  /** Lets nobody ask before a source that is busy says that one may. */
  private leaveAlone(url: string, retryAfter: string | undefined): void {
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

/** @throws AbortError, around what `read` throws, where the answer is too long to be asked for once more. */
function readOnce<Answer>(body: Uint8Array, read: (body: Uint8Array) => Answer): Answer {
  try {
    return read(body)
  } catch (error) {
    throw body.length > MAX_ASKED_AGAIN && error instanceof Error ? new AbortError(error) : error
  }
}

/** How an answer is read. */
interface NewRecords<Answer> {
  maxBytes: number
  /** The code of the error where it is longer; `BAD_ANSWER` unless set. */
  tooLarge?: 'TOO_LARGE' | 'BAD_ANSWER'
  read: (body: Uint8Array) => Answer
}

interface Answered {
  status: number
  retryAfter: string | undefined
  body: Uint8Array
}

/** `Retry-After` in milliseconds: seconds, or a date (RFC 9110 10.2.3). 0 where it says nothing that can be read. */
function requestedPause(value: string | undefined): number {
  if (value === undefined) return 0
  const pause = /^\d{1,9}$/.test(value.trim()) ? Number(value) * 1000 : Date.parse(value) - Date.now()
  return Number.isNaN(pause) ? 0 : Math.max(0, pause)
}
