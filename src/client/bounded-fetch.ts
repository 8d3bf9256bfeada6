import { joinBytes, readStrictUtf8 } from '../../backend/src/protocol/bytes.js'
import { monotonic } from '../../backend/src/protocol/monotonic.js'
import type { HttpClient, HttpClientResponse } from '../../backend/src/protocol/sdk-types.js'
import { DEFAULT_MAX_BYTES } from './bundle.js'
import { SourceError } from './errors.js'

export interface FetchOptions {
  /** Time for all requests of one question, to the last byte, in milliseconds; 20,000 by default. */
  timeout?: number
  /** The limit on all answers to one question together, in bytes after decompression; 64 MiB by default. */
  maxBytes?: number
  /** Cancels the question. */
  signal?: AbortSignal
  /** Replaces the platform's `fetch`. */
  fetch?: typeof globalThis.fetch
  /** The URL for messages, if that of the request may contain a key. */
  shown?: string
}

/** The default time for one index, in milliseconds. */
export const DEFAULT_TIMEOUT = 20_000
/** The longest delay that `setTimeout` supports, in milliseconds; it fires at once for longer ones. */
export const LONGEST_TIMER = 2 ** 31 - 1

export interface FetchedAnswer {
  status: number
  statusText: string
  /** Without parameters. */
  contentType: string
  headers: Headers
  body: Uint8Array
}

/**
 * Sends one request and reads the answer within limits. Redirects are refused: an index answers for itself, and cannot
 * send a wallet's questions elsewhere.
 *
 * @throws SourceError `UNREACHABLE`, `TIMEOUT`, `TOO_LARGE`.
 */
export async function fetchBounded(
  url: string,
  init: RequestInit,
  options: FetchOptions,
): Promise<FetchedAnswer> {
  const { timeout = DEFAULT_TIMEOUT, maxBytes = DEFAULT_MAX_BYTES, signal } = options
  const { fetch = globalThis.fetch, shown = url } = options
  const late = (): Error => new SourceError('TIMEOUT', `${shown} took longer than ${timeout} ms`)
  const ask = async (signal: AbortSignal): Promise<FetchedAnswer> => {
    const response = await fetch(url, { ...init, redirect: 'error', signal })
    const { status, statusText, headers, body } = response
    const [contentType = ''] = (headers.get('content-type') ?? '').split(';')
    const length = Number(headers.get('content-length'))
    return {
      status,
      statusText,
      contentType: contentType.trim().toLowerCase(),
      headers,
      body: await readBounded(chunksOf(body, signal), { url: shown, maxBytes, length }),
    }
  }
  try {
    // Some implementations of `fetch` react to the signal late, or never.
    return await withTimeLimit({ milliseconds: timeout, late, signal }, (signal) =>
      unlessAborted(ask(signal), signal),
    )
  } catch (cause) {
    if (cause instanceof SourceError) throw cause
    throw new SourceError('UNREACHABLE', `${shown} does not answer: ${fetchFailure(cause)}`, { cause })
  }
}

/** The stricter of two sets of limits; either signal cancels. */
export function withBounds(
  options: FetchOptions,
  bounds: Omit<FetchOptions, 'fetch' | 'shown'>,
): FetchOptions & { timeout: number; maxBytes: number } {
  const { timeout = DEFAULT_TIMEOUT, maxBytes = DEFAULT_MAX_BYTES, fetch } = options
  const signals = [options.signal, bounds.signal].filter((signal) => signal !== undefined)
  return {
    timeout: Math.min(timeout, bounds.timeout ?? timeout),
    maxBytes: Math.min(maxBytes, bounds.maxBytes ?? maxBytes),
    ...(signals.length > 0 && { signal: AbortSignal.any(signals) }),
    fetch,
  }
}

/** Limits on several requests together: one deadline, counted from now, and a number of bytes. */
export class FetchBudget {
  private readonly end: number
  private bytes: number

  constructor(private readonly options: FetchOptions) {
    this.end = monotonic() + (options.timeout ?? DEFAULT_TIMEOUT)
    this.bytes = options.maxBytes ?? DEFAULT_MAX_BYTES
  }

  get signal(): AbortSignal | undefined {
    return this.options.signal
  }

  /** How much may still be read, in bytes. */
  get bytesLeft(): number {
    return this.bytes
  }

  /** An equal share of what is left, for one of several requests. */
  share(count: number): { timeout: number; maxBytes: number } {
    const timeout = Math.max(0, Math.ceil((this.end - monotonic()) / count))
    return { timeout, maxBytes: Math.floor(this.bytes / count) }
  }

  /** Counts bytes that were read. */
  take(bytes: number): void {
    this.bytes = Math.max(0, this.bytes - bytes)
  }

  /** As {@link fetchBounded}, within what is left of the limits and with an answer of at most `maxBytes`. */
  async fetch(url: string, init: RequestInit, maxBytes = Number.POSITIVE_INFINITY): Promise<FetchedAnswer> {
    const left = this.share(1)
    try {
      const answer = await fetchBounded(url, init, {
        ...this.options,
        timeout: left.timeout,
        maxBytes: Math.min(left.maxBytes, maxBytes),
      })
      this.take(answer.body.length)
      return answer
    } catch (error) {
      // If an answer declares its length, hardly any of it was read.
      if (error instanceof SourceError && error.code === 'TOO_LARGE')
        this.take(Number(error.data?.bytesRead ?? this.bytes))
      throw error
    }
  }
}

const ENDED = /* @__PURE__ */ new SourceError('TIMEOUT', 'no longer needed')

/**
 * Runs work with a signal that is aborted when its time is over or the caller's signal is, and also when the work has ended, to
 * cancel requests that nobody waits for any more.
 *
 * @param limit.late Makes the reason of the signal when the time is over.
 * @throws the reason of the signal; what the work throws before that.
 */
export async function withTimeLimit<Result>(
  limit: { milliseconds: number; late: () => Error; signal?: AbortSignal | undefined },
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const { milliseconds, late, signal } = limit
  const over = new AbortController()
  // Not `AbortSignal.timeout`: its timers keep running after the answer, so thousands of requests leave thousands of them. Nor
  // `AbortSignal.any`: a long-lived signal would remember each request.
  const timer = setTimeout(() => over.abort(late()), Math.min(Math.max(0, milliseconds), LONGEST_TIMER))
  const cancel = (): void => over.abort(signal?.reason)
  signal?.addEventListener('abort', cancel, { once: true })
  if (signal?.aborted === true) cancel()
  try {
    return await work(over.signal)
  } catch (error) {
    throw over.signal.aborted ? over.signal.reason : error
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', cancel)
    over.abort(ENDED)
  }
}

/**
 * Waits for a promise until the signal is aborted, whether or not the work behind it reacts to the signal.
 *
 * @throws what the promise rejects with; the reason of the signal.
 */
export async function unlessAborted<Answer>(
  answer: Promise<Answer>,
  signal: AbortSignal | undefined,
): Promise<Answer> {
  if (signal === undefined) return await answer
  let stop = (): void => undefined
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason)
    signal.addEventListener('abort', stop, { once: true })
    if (signal.aborted) stop()
  })
  try {
    return await Promise.race([answer, aborted])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

export interface HttpClientBounds {
  /** Time for one request, to the last byte of its answer, in milliseconds. */
  timeout: number
  /** The longest answer that is read, in bytes after decompression. */
  maxBytes: number
}

/**
 * An HTTP client for the SDK's classes (chain trackers, broadcasters) that reads at most `maxBytes` of an answer, cancels
 * a request after `timeout` or by its signal, and refuses redirects. The SDK's default client does none of this, and an
 * endless body fills memory. As there, `data` is parsed JSON if the content type says so, and text otherwise; a body that
 * is not the JSON it claims to be fails the request.
 *
 * @returns A client whose requests throw SourceError `UNREACHABLE`, `TIMEOUT`, `TOO_LARGE`, `BAD_ANSWER`.
 */
export function boundedHttpClient(bounds: HttpClientBounds): HttpClient {
  return {
    async request(url, { method, headers, data, signal }) {
      const init = { method, headers, body: data === undefined ? undefined : JSON.stringify(data) }
      const answer = await fetchBounded(url, init, { ...bounds, signal })
      const { status, statusText } = answer
      const ok = status >= 200 && status < 300
      return { ok, status, statusText, data: dataOf(url, answer) } as HttpClientResponse
    },
  }
}

function dataOf(url: string, { contentType, body }: FetchedAnswer): unknown {
  if (contentType !== 'application/json') return new TextDecoder().decode(body)
  const data = readJson(body)
  if (data === undefined) throw new SourceError('BAD_ANSWER', `${url} answered invalid JSON`)
  return data
}

/**
 * Reads a body to its end.
 *
 * @param options.length The declared length; 0, which is the default, or NaN if there is none.
 * @throws SourceError `TOO_LARGE` if it declares, or has, more than `maxBytes`.
 */
export async function readBounded(
  chunks: AsyncIterable<Uint8Array>,
  { url, maxBytes, length = 0 }: { url: string; maxBytes: number; length?: number },
): Promise<Uint8Array> {
  const read: Uint8Array[] = []
  let total = 0
  for await (const chunk of chunks) {
    total += chunk.length
    if (Math.max(total, length || 0) > maxBytes)
      throw new SourceError('TOO_LARGE', `${url} answered more than ${maxBytes} bytes`, {
        data: { bytesRead: total },
      })
    read.push(chunk)
  }
  return joinBytes(read)
}

/**
 * The chunks of a body until it ends or the signal is aborted. Not every browser can iterate the stream itself.
 *
 * This listens to the signal as well: Node's `fetch` drops its own listener once the request is garbage, and a body that
 * trickles in would keep its connection, and the process, alive forever.
 */
export async function* chunksOf(body: Response['body'], signal?: AbortSignal): AsyncGenerator<Uint8Array> {
  const reader = body?.getReader()
  if (reader === undefined) return
  // Not awaited: a failure to cancel changes nothing.
  const cancel = (): void => void reader.cancel().catch(() => undefined)
  signal?.addEventListener('abort', cancel, { once: true })
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) yield read.value
  } finally {
    signal?.removeEventListener('abort', cancel)
    cancel()
  }
}

/** The reason of a failed request: the cause of `fetch`'s error, or the code if several addresses were tried. */
export function fetchFailure(error: unknown): string {
  const inner: unknown = error instanceof Error && error.cause !== undefined ? error.cause : error
  if (!(inner instanceof Error)) return String(inner)
  return inner.message || ('code' in inner ? String(inner.code) : inner.name)
}

/** The error for an index that has not caught up yet; undefined for any other answer. */
export function notCaughtUp(url: string, { status, body }: FetchedAnswer): SourceError | undefined {
  const answer = status === 503 && body.length <= MAX_ERROR_BYTES ? readJson(body) : undefined
  if (field(answer, 'code') !== 'NOT_CAUGHT_UP') return undefined
  const progress = field(answer, 'progress')
  const [height, chainHeight] = [field(progress, 'height'), field(progress, 'chainHeight')]
  const far =
    Number.isSafeInteger(height) && Number.isSafeInteger(chainHeight)
      ? ` (it has come to block ${height} of ${chainHeight})`
      : ''
  return new SourceError(
    'NOT_CAUGHT_UP',
    `${url} has not followed the tree of names to its end yet${far}, so it cannot say what is free: ask another server, or try again later`,
  )
}

/** The code of an index's error, after a space; empty if there is none. */
export function shownCode({ body }: FetchedAnswer): string {
  const code = body.length > MAX_ERROR_BYTES ? undefined : field(readJson(body), 'code')
  return typeof code === 'string' && /^[A-Z_]{1,40}$/.test(code) ? ` ${code}` : ''
}

/** The longest error that is read, in bytes. */
const MAX_ERROR_BYTES = 64 * 1024

/** Parses JSON; undefined for anything else, which then fails the check of each field. */
export function readJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(readStrictUtf8(bytes) ?? '')
  } catch {
    // Handled like JSON of the wrong shape.
    return undefined
  }
}

/** A field of an object, which may be an instance of a class; undefined if it is missing, or the value is not an object. */
export function field(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[key] : undefined
}
