import { once } from 'node:events'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { KEPT } from '../server/connections.js'
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
 * Servers that stand before a real one and answer some paths themselves, for the tests of one file: what a host that lies
 * would be. They are stopped when the tests are done.
 */
export function useNameIndexes(): {
  /** @param behind The URL of the real server; without one, every other path is a 404. */
  start(answers: Record<string, RouteAnswer>, behind?: string): Promise<NameIndex>
} {
  const servers: Server[] = []
  afterAll(async () => {
    for (const server of servers) {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    }
  })
  return {
    async start(answers, behind) {
      const asked: string[] = []
      const server = createServer({ keepAliveTimeout: KEPT }, async (request, response) => {
        const path = request.url ?? ''
        asked.push(path)
        const chunks: Buffer[] = []
        for await (const chunk of request) chunks.push(chunk as Buffer)
        const one = answers[path]
        if (one !== undefined && 'does' in one) return one.does(response)
        if (one !== undefined && 'body' in one) return send(response, one)
        if (behind === undefined) return send(response, NOT_FOUND)
        const { method = 'GET' } = request
        const headers = { 'content-type': request.headers['content-type'] ?? '' }
        const real = await ask(behind, path, { method, headers, body: Buffer.concat(chunks) })
        const type = real.headers['content-type'] ?? ''
        const body = changed(one, real)
        send(response, { status: real.status, headers: { 'content-type': type }, body })
      })
      servers.push(server)
      server.listen(0, '127.0.0.1')
      await once(server, 'listening')
      return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked }
    },
  }
}

function changed(
  answer: Extract<RouteAnswer, { change: unknown } | { alter: unknown }> | undefined,
  real: Answer,
): unknown {
  const bytes = Uint8Array.from(real.body)
  if (answer === undefined) return bytes
  return 'change' in answer ? answer.change(real.json) : answer.alter(bytes)
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
