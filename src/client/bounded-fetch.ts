import { joinBytes } from '../../backend/src/protocol/bytes.js'
import { DEFAULT_MAX_BYTES } from './bundle.js'
import { SourceError } from './source-error.js'

/** How far an index is waited for. */
export interface FetchOptions {
  /** For one answer, in milliseconds, to its last byte; 20,000 unless set. */
  timeout?: number
  /** The longest answer that is read, in bytes; 64 MiB unless set. */
  maxBytes?: number
  /** Gives the answer up before its time. */
  signal?: AbortSignal
  /** In place of the platform's. */
  fetch?: typeof globalThis.fetch
}

const DEFAULT_TIMEOUT = 20_000

export interface FetchedAnswer {
  status: number
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
  const { timeout = DEFAULT_TIMEOUT, maxBytes = DEFAULT_MAX_BYTES, fetch = globalThis.fetch } = options
  const stop = new AbortController()
  const giveUp = (): void => stop.abort()
  // Not `AbortSignal.timeout`, whose timer goes on after the answer: whoever asks thousands of times has thousands of them.
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    giveUp()
  }, timeout)
  options.signal?.addEventListener('abort', giveUp, { once: true })
  if (options.signal?.aborted === true) giveUp()
  try {
    const response = await fetch(url, { ...init, redirect: 'error', signal: stop.signal })
    const [contentType = ''] = (response.headers.get('content-type') ?? '').split(';')
    return {
      status: response.status,
      contentType: contentType.trim().toLowerCase(),
      headers: response.headers,
      body: await readBody(response, { url, maxBytes }),
    }
  } catch (cause) {
    if (cause instanceof SourceError) throw cause
    if (isLate) throw new SourceError('TIMEOUT', `${url} took longer than ${timeout} ms`, { cause })
    throw new SourceError('UNREACHABLE', `${url} does not answer: ${reasonOf(cause)}`, { cause })
  } finally {
    clearTimeout(timer)
    options.signal?.removeEventListener('abort', giveUp)
  }
}

async function readBody(
  response: Response,
  { url, maxBytes }: { url: string; maxBytes: number },
): Promise<Uint8Array> {
  const tooLarge = () => new SourceError('TOO_LARGE', `${url} answers more than ${maxBytes} bytes`)
  const { body } = response
  if (body === null) return new Uint8Array()
  const reader = body.getReader()
  const pieces: Uint8Array[] = []
  let length = 0
  try {
    if (Number(response.headers.get('content-length')) > maxBytes) throw tooLarge()
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      length += read.value.length
      if (length > maxBytes) throw tooLarge()
      pieces.push(read.value)
    }
    return joinBytes(pieces)
  } catch (error) {
    // What is left of the answer is of no use; that it cannot even be cancelled says nothing new.
    await reader.cancel().catch(() => undefined)
    throw error
  }
}

/** What `fetch` knows of a failure stands in its cause, and there in the code where several addresses were tried. */
function reasonOf(error: unknown): string {
  const inner: unknown = error instanceof Error && error.cause !== undefined ? error.cause : error
  if (!(inner instanceof Error)) return String(inner)
  return inner.message || ('code' in inner ? String(inner.code) : inner.name)
}
