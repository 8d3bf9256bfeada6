import type { ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { serving } from '../server/connections.js'
import { type Answer, ask } from '../server/test-server.js'

/** What an index answers instead of the server behind it. */
export interface FixedAnswer {
  /** 200 unless set. */
  status?: number
  headers?: Record<string, string>
  /** JSON, unless it is bytes. */
  body: unknown
}

/** What is sent for one path: an answer, a changed form of the true one, or whatever is done to the connection. */
export type RouteAnswer =
  | FixedAnswer
  | { change: (json: unknown) => unknown }
  | { alter: (body: Uint8Array) => Uint8Array }
  | { does: (response: ServerResponse) => void }

export interface NameIndex {
  url: string
  /** The paths that were asked for, in order. */
  asked: string[]
}

/**
 * A server that stands before a real one and answers some paths itself, for as long as the test runs: what a host that lies would
 * be.
 *
 * @param behind The URL of the real server; without one, every other path is a 404.
 */
export async function startIndex(answers: Record<string, RouteAnswer>, behind?: string): Promise<NameIndex> {
  const asked: string[] = []
  const { url } = await serving(async (request, response) => {
    const path = request.url ?? ''
    asked.push(path)
    const body = await buffer(request)
    const one = answers[path]
    if (one !== undefined && 'does' in one) return one.does(response)
    if (one !== undefined && 'body' in one) return send(response, one)
    if (behind === undefined) return send(response, NOT_FOUND)
    const { method = 'GET' } = request
    const headers = { 'content-type': request.headers['content-type'] ?? '' }
    const real = await ask(behind, path, { method, headers, body })
    const type = real.headers['content-type'] ?? ''
    send(response, { status: real.status, headers: { 'content-type': type }, body: changed(one, real) })
  })
  return { url, asked }
}

function changed(
  answer: Extract<RouteAnswer, { change: unknown } | { alter: unknown }> | undefined,
  real: Answer,
): unknown {
  const bytes = Uint8Array.from(real.body)
  if (answer === undefined) return bytes
  return 'change' in answer ? answer.change(real.json) : answer.alter(bytes)
}

/** A reader takes what comes in chunks, and sees in the last one that it is too much. */
export const CHUNK_BYTES = 64 * 1024

/** Answers spaces for as long as anybody reads. */
export function endless(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/json' })
  const chunk = Buffer.alloc(CHUNK_BYTES, ' ')
  const write = (): void => {
    while (response.write(chunk));
  }
  response.on('drain', write)
  write()
}

const NOT_FOUND: FixedAnswer = { status: 404, body: { error: 'nothing here', code: 'NOT_FOUND' } }

function send(response: ServerResponse, { status = 200, headers, body }: FixedAnswer): void {
  const isBytes = body instanceof Uint8Array
  const type = isBytes ? 'application/octet-stream' : 'application/json'
  // Pages of other origins ask, too.
  const cors = { 'access-control-allow-origin': '*', 'access-control-expose-headers': '*' }
  response.writeHead(status, { 'content-type': type, ...cors, ...headers })
  response.end(isBytes ? body : JSON.stringify(body))
}
