import { randomUUID } from 'node:crypto'
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { EXPOSED_HEADERS } from '../../gateway/http/cross-origin.js'
import type { ErrorCode } from '../../gateway/http/errors.js'
import type { Limits } from '../config/limits.js'

/** What is answered to a request that no route is asked about. The connection ends with it. */
export interface Refusal {
  status: number
  code: ErrorCode
  message: string
}

/**
 * What stands in the head of a request that is refused before any route is asked; undefined where nothing does. The path
 * has an answer of its own (414): that of the whole head is Node's, which has stopped reading by then.
 */
export function refusalOfHead(
  { url = '', headers, httpVersionMinor }: IncomingMessage,
  { maxPathBytes }: Pick<Limits, 'maxPathBytes'>,
): Refusal | undefined {
  if (url.length > maxPathBytes)
    return { status: 414, code: 'TOO_LARGE', message: `a path may have at most ${maxPathBytes} bytes` }
  // RFC 9112 3.2.
  if (headers.host === undefined && httpVersionMinor > 0)
    return { status: 400, code: 'BAD_BODY', message: 'the request has no Host header' }
  return undefined
}

/** RFC 9110 10.1.1. Node continues by itself where `100-continue` is expected, the one expectation that there is. */
export const UNMET_EXPECTATION: Refusal = {
  status: 417,
  code: 'BAD_BODY',
  message: 'the only supported Expect value is 100-continue',
}

/** What Node's parser and its timers found; undefined where the connection is broken, and nobody is there to answer. */
export function refusalOf({ code = '' }: NodeJS.ErrnoException): Refusal | undefined {
  if (code === 'HPE_HEADER_OVERFLOW')
    return { status: 431, code: 'TOO_LARGE', message: 'the path and headers exceed the limit' }
  if (code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW')
    return { status: 413, code: 'TOO_LARGE', message: 'the chunk extensions exceed the limit' }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return { status: 408, code: 'BAD_BODY', message: 'the request took too long to arrive' }
  if (code.startsWith('HPE_')) return { status: 400, code: 'BAD_BODY', message: 'the request is malformed' }
  return undefined
}

/** Refuses a request that has a response. */
export function sendRefusal(response: ServerResponse, refusal: Refusal): void {
  const { headers, body } = answerOf(refusal)
  response.writeHead(refusal.status, headers).end(body)
}

/**
 * Refuses on a connection itself, where there is no response. It is left to the other side to end it, for a moment: what
 * is still on its way here would make the system break it off, and the answer with it.
 */
export function writeRefusal(socket: Duplex, refusal: Refusal, { bodiless }: { bodiless: boolean }): void {
  const { headers, body } = answerOf(refusal)
  // It has come to nobody who would have given it an id.
  const lines = Object.entries({ ...headers, 'X-Request-Id': randomUUID() }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  const head = `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}\r\n${lines.join('')}\r\n`
  socket.end(bodiless ? head : head + body)
  setTimeout(() => socket.destroy(), LINGER).unref()
}

/** In milliseconds. */
const LINGER = 500

function answerOf({ code, message }: Refusal): { headers: Record<string, string>; body: string } {
  const body = JSON.stringify({ error: message, code })
  return {
    body,
    headers: {
      'Access-Control-Allow-Origin': '*',
      'Access-Control-Expose-Headers': EXPOSED_HEADERS,
      'Cache-Control': 'no-store',
      'Content-Type': 'application/json; charset=utf-8',
      'Content-Length': String(Buffer.byteLength(body)),
      Connection: 'close',
    },
  }
}
