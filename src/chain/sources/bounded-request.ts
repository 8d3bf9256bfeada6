import type { Dispatcher, Pool } from 'undici'
import { joinBytes } from '../../../backend/src/protocol/bytes.js'
import { fetchFailure } from '../../client/bounded-fetch.js'
import { SourceError } from '../../client/errors.js'

export interface BoundedRequest extends Pick<Dispatcher.DispatchOptions, 'path' | 'method' | 'body'> {
  headers: Record<string, string>
  /** The URL for messages. */
  shown: string
  /** For all of it, to the last byte of the answer, in milliseconds. */
  timeout: number
  /** The longest body to read. */
  maxBytes: number
}

export interface BoundedAnswer {
  status: number
  retryAfter: string | undefined
  body: Uint8Array
}

/**
 * Sends a request and reads the answer, without redirects or decompression. Not with `fetch`, nor with `request` of undici: a
 * transaction of the chain takes several requests, and most of their time would go into streams and signals.
 *
 * @throws SourceError `TIMEOUT`, `TOO_LARGE`, or `UNREACHABLE` for any other failure, as when the connections are destroyed.
 */
export async function requestBounded(
  connections: Pool,
  { shown, timeout, maxBytes, ...request }: BoundedRequest,
): Promise<BoundedAnswer> {
  let timer: NodeJS.Timeout | undefined
  try {
    return await new Promise<BoundedAnswer>((resolve, reject) => {
      const answer = new ReadAnswer({ shown, maxBytes, resolve, reject })
      timer = setTimeout(() => {
        answer.fail(new SourceError('TIMEOUT', `${shown} took longer than ${timeout} ms`))
      }, timeout)
      connections.dispatch(request, answer)
    })
  } catch (cause) {
    if (cause instanceof SourceError) throw cause
    throw new SourceError('UNREACHABLE', `${shown} does not answer: ${fetchFailure(cause)}`, { cause })
  } finally {
    clearTimeout(timer)
  }
}

interface ReadOptions {
  shown: string
  maxBytes: number
  resolve: (answer: BoundedAnswer) => void
  reject: (error: Error) => void
}

/** Collects the parts of an answer as they arrive. */
class ReadAnswer implements Dispatcher.DispatchHandlers {
  private status = 0
  private retryAfter: string | undefined
  private readonly chunks: Uint8Array[] = []
  private bytes = 0
  private failure: Error | undefined
  private abort: (error: Error) => void = () => {}

  constructor(private readonly options: ReadOptions) {}

  /** Ends the request, also if it waits for a connection. */
  fail(error: Error): void {
    this.failure = error
    this.options.reject(error)
    this.abort(error)
  }

  onConnect(abort: (error?: Error) => void): void {
    this.abort = abort
    if (this.failure !== undefined) abort(this.failure)
  }

  onHeaders(status: number, headers: Buffer[]): boolean {
    this.status = status
    if (status !== 200) this.retryAfter = headerOf(headers, 'retry-after')
    return true
  }

  onData(chunk: Uint8Array): boolean {
    const { shown, maxBytes } = this.options
    this.bytes += chunk.length
    if (this.bytes > maxBytes)
      this.fail(new SourceError('TOO_LARGE', `${shown} answered more than ${maxBytes} bytes`))
    else this.chunks.push(chunk)
    return true
  }

  onComplete(): void {
    const { status, retryAfter, chunks } = this
    this.options.resolve({ status, retryAfter, body: joinBytes(chunks) })
  }

  onError(error: Error): void {
    this.options.reject(error)
  }
}

/** The first value of a header; names and values alternate. */
function headerOf(headers: Buffer[], name: string): string | undefined {
  const at = headers.findIndex(
    (each, index) => index % 2 === 0 && each.toString('latin1').toLowerCase() === name,
  )
  return at === -1 ? undefined : headers[at + 1]?.toString('latin1')
}
