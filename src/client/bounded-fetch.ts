import type { HttpClient, HttpClientResponse } from '@bsv/sdk'
import { joinBytes } from '../../backend/src/protocol/bytes.js'
import { DEFAULT_MAX_BYTES } from './bundle.js'
import { readJson } from './json-answer.js'
import { SourceError } from './source-error.js'

/** How far a server is waited for and read. */
export interface FetchOptions {
  /** For all that is asked of it for one question, in milliseconds, to the last byte; 20,000 unless set. */
  timeout?: number
  /** What is read of all its answers to one question together, in bytes after decompression; 64 MiB unless set. */
  maxBytes?: number
  /** Gives the answer up before its time. */
  signal?: AbortSignal
  /** In place of the platform's. */
  fetch?: typeof globalThis.fetch
}

/** How long one index is waited for unless set, in milliseconds. */
export const DEFAULT_TIMEOUT = 20_000
/** The longest that a timer can wait; one that is set for longer goes off at once. */
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
 * Asks one question over HTTP and reads the answer, within bounds. A redirect is refused: the index that was asked answers
 * for itself, and nobody sends a wallet's questions around.
 *
 * @throws SourceError `UNREACHABLE`, `TIMEOUT`, `TOO_LARGE`.
 */
export async function fetchBounded(
  url: string,
  init: RequestInit,
  options: FetchOptions,
): Promise<FetchedAnswer> {
  const { maxBytes = DEFAULT_MAX_BYTES, fetch = globalThis.fetch } = options
  return await withinTime(url, options, async (signal) => {
    const response = await fetch(url, { ...init, redirect: 'error', signal })
    const { status, statusText, headers, body } = response
    const [contentType = ''] = (headers.get('content-type') ?? '').split(';')
    const length = Number(headers.get('content-length'))
    return {
      status,
      statusText,
      contentType: contentType.trim().toLowerCase(),
      headers,
      body: await joinBounded(chunksOf(body, signal), { url, maxBytes, length }),
    }
  })
}

/** The tighter of two bounds each; either signal gives up. */
export function withBounds(
  options: FetchOptions,
  bounds: Omit<FetchOptions, 'fetch'>,
): FetchOptions & { timeout: number; maxBytes: number } {
  const { timeout = DEFAULT_TIMEOUT, maxBytes = DEFAULT_MAX_BYTES, fetch } = options
  const signals = [options.signal, bounds.signal].filter((signal) => signal !== undefined)
  return {
    timeout: Math.min(timeout, bounds.timeout ?? timeout),
    maxBytes: Math.min(maxBytes, bounds.maxBytes ?? maxBytes),
    ...(signals.length > 0 && { signal: AbortSignal.any(signals) }),
    ...(fetch && { fetch }),
  }
}

/** Several requests that share one deadline, from now on, and one budget of bytes. */
export class FetchBudget {
  private readonly end: number
  private bytes: number

  constructor(private readonly options: FetchOptions) {
    this.end = performance.now() + (options.timeout ?? DEFAULT_TIMEOUT)
    this.bytes = options.maxBytes ?? DEFAULT_MAX_BYTES
  }

  /** As {@link fetchBounded}, of no more than `maxBytes` and of what is left of both. */
  async fetch(url: string, init: RequestInit, maxBytes = Number.POSITIVE_INFINITY): Promise<FetchedAnswer> {
    const answer = await fetchBounded(url, init, {
      ...this.options,
      timeout: Math.max(0, Math.ceil(this.end - performance.now())),
      maxBytes: Math.min(this.bytes, maxBytes),
    })
    this.bytes -= answer.body.length
    return answer
  }
}

/**
 * Asks one question, and gives the answer up after its time, or when told to.
 *
 * @throws what `ask` throws of SourceError, and SourceError `TIMEOUT` or `UNREACHABLE` for whatever else.
 */
export async function withinTime<Answer>(
  url: string,
  { timeout = DEFAULT_TIMEOUT, signal }: Pick<FetchOptions, 'timeout' | 'signal'>,
  ask: (signal: AbortSignal) => Promise<Answer>,
): Promise<Answer> {
  const stop = new AbortController()
  const giveUp = (): void => stop.abort()
  // Not `AbortSignal.timeout`, whose timer goes on after the answer: whoever asks thousands of times has thousands of them.
  let isLate = false
  const timer = setTimeout(
    () => {
      isLate = true
      giveUp()
    },
    Math.min(timeout, LONGEST_TIMER),
  )
  signal?.addEventListener('abort', giveUp, { once: true })
  if (signal?.aborted === true) giveUp()
  try {
    // Some implementations of `fetch` look at the signal late, or never.
    return await unlessAborted(ask(stop.signal), stop.signal)
  } catch (cause) {
    if (cause instanceof SourceError) throw cause
    if (signal?.aborted && signal.reason instanceof SourceError) throw signal.reason
    if (isLate) throw new SourceError('TIMEOUT', `${url} took longer than ${timeout} ms`, { cause })
    throw new SourceError('UNREACHABLE', `${url} does not answer: ${reasonOf(cause)}`, { cause })
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', giveUp)
  }
}

/**
 * Waits for an answer until the signal is aborted, whether or not whoever is asked looks at the signal.
 *
 * @throws what the answer throws; the reason of the signal.
 */
export async function unlessAborted<Answer>(answer: Promise<Answer>, signal: AbortSignal): Promise<Answer> {
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

/** Bounds of {@link boundedHttpClient}. */
export interface HttpClientBounds {
  /** Milliseconds for one request, to the last byte of its answer. */
  timeout: number
  /** The longest answer that is read, in bytes after decompression. */
  maxBytes: number
}

/**
 * An HTTP client for the SDK's classes (chain trackers, broadcasters) that reads no more than `maxBytes` of an answer,
 * gives a request up after `timeout` or when its own signal says so, and refuses redirects. The SDK's default client does
 * none of this: an endless body fills memory. As there, `data` of the answer is JSON where its content type says so, else
 * text; a body that is not the JSON it claims to be fails the request.
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
  if (data === undefined) throw new SourceError('BAD_ANSWER', `${url} answers what is no JSON`)
  return data
}

/**
 * Reads an answer to its end.
 *
 * @param options.length What the answer says of its length; 0 or NaN where it says nothing.
 * @throws SourceError `TOO_LARGE` where it says, or has, more than `maxBytes`.
 */
export async function joinBounded(
  pieces: AsyncIterable<Uint8Array>,
  { url, maxBytes, length }: { url: string; maxBytes: number; length: number },
): Promise<Uint8Array> {
  const read: Uint8Array[] = []
  let total = 0
  for await (const piece of pieces) {
    total += piece.length
    if (Math.max(total, length || 0) > maxBytes)
      throw new SourceError('TOO_LARGE', `${url} answers more than ${maxBytes} bytes`)
    read.push(piece)
  }
  return joinBytes(read)
}

/**
 * The pieces of a body until it ends or the signal is aborted. Not the stream's own iterator, which not every browser has.
 *
 * The signal is listened to here as well: `fetch` of Node loses its own once the request is garbage, and a body that drips
 * would keep its connection, and the process, for ever.
 */
async function* chunksOf(body: Response['body'], signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const reader = body?.getReader()
  if (reader === undefined) return
  // Nobody waits for it, and that what is left cannot even be cancelled says nothing new.
  const cancel = (): void => void reader.cancel().catch(() => undefined)
  signal.addEventListener('abort', cancel, { once: true })
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) yield read.value
  } finally {
    signal.removeEventListener('abort', cancel)
    cancel()
  }
}

/** What `fetch` knows of a failure stands in its cause, and there in the code where several addresses were tried. */
function reasonOf(error: unknown): string {
  const inner: unknown = error instanceof Error && error.cause !== undefined ? error.cause : error
  if (!(inner instanceof Error)) return String(inner)
  return inner.message || ('code' in inner ? String(inner.code) : inner.name)
}
