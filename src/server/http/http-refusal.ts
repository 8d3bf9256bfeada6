import { randomUUID } from 'node:crypto'
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import type { ErrorCode } from '../../gateway/http/errors.js'
import { EXPOSED_HEADERS } from '../../gateway/http/security-headers.js'
import type { Limits } from '../config/limits.js'

/** The response to a request that reaches no route. The connection ends with it. */
export interface Refusal {
  status: number
  code: ErrorCode
  message: string
}

/**
 * The refusal of a request for its head; undefined if it is fine. A path that is too long has a status of its own (414); for
 * the complete head there is Node's limit (431).
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

/** RFC 9110 10.1.1. Node itself handles `100-continue`, the only expectation there is. */
export const UNMET_EXPECTATION: Refusal = {
  status: 417,
  code: 'BAD_BODY',
  message: 'the only supported Expect value is 100-continue',
}

/** The refusal for an error of Node's parser or timers; undefined if the connection is broken. */
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

/** Refuses a request that was parsed. */
export function sendRefusal(response: ServerResponse, refusal: Refusal): void {
  const { headers, body } = answerOf(refusal)
  response.writeHead(refusal.status, headers).end(body)
}

/**
 * Refuses on the connection, if there is no response object. The client has a moment to close it: data still arriving would
 * make the system reset the connection, and the client would lose the response.
 */
export function writeRefusal(socket: Duplex, refusal: Refusal, { bodiless }: { bodiless: boolean }): void {
  const { headers, body } = answerOf(refusal)
  // The request was not parsed, so it has no id yet.
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
      'Access-Control-Allow-Private-Network': 'true',
      'Access-Control-Expose-Headers': EXPOSED_HEADERS,
      'Cache-Control': 'no-store',
      'Content-Type': 'application/json; charset=utf-8',
      'Content-Length': String(Buffer.byteLength(body)),
      Connection: 'close',
    },
  }
}
