import { randomUUID } from 'node:crypto'
import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import type { ErrorCode } from '../../gateway/http/errors.js'
import { EXPOSED_HEADERS } from '../../gateway/http/security-headers.js'

/** The response to a request that reaches no route. It ends the connection. */
export interface Refusal {
  status: number
  code: ErrorCode
  message: string
}

/** Refuses a request that was parsed. */
export function sendRefusal(response: ServerResponse, refusal: Refusal): void {
  const { headers, body } = answerOf(refusal)
  response.writeHead(refusal.status, headers).end(body)
}

/**
 * Refuses on the raw connection, if there is no response object. The client has a moment to close it: data still arriving
 * would make the system reset the connection, and the client would lose the response.
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

/** How long a refused connection stays open, in milliseconds. */
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
