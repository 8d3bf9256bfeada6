import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import express, { type ErrorRequestHandler, type RequestHandler } from 'express'
import { pino } from 'pino'
import { sha256 } from '../../../../backend/src/graph/native-hash.js'
import { utf8 } from '../../../../backend/src/protocol/bytes.js'
import type { MetadataRecord } from '../../../../src/gateway/metadata/metadata-record.js'
import { createApp } from '../../../../src/server/app.js'
import { aheadOfRoutes } from '../../../../src/server/http/hot-path.js'
import { listen, openHttpServer } from '../../../../src/server/http/http-server.js'
import { warmUp } from '../../../../src/server/server.js'
import { expectError } from '../../../support/gateway/expect-error.js'
import {
  beefOf,
  FakeChain,
  inscriptionScript,
  OPEN_LOCK,
  p2pkh,
} from '../../../support/protocol/fake-chain.js'
import { serving } from '../../../support/server/connections.js'
import {
  ask,
  lastingHeaders,
  OPERATOR,
  posted,
  SILENT,
  treeOf,
  useServers,
} from '../../../support/server/test-server.js'
import { until } from '../../../support/server/waiting.js'

// `trials/cached` compares all requests with those of the routes alone.

const { start } = useServers()

/** A server with an inscription and a name, and the paths of what it has in memory. */
async function filled(env: Record<string, string> = {}, options: Parameters<typeof start>[1] = {}) {
  const chain = new FakeChain()
  const server = await start({ ...treeOf(chain.deployment), ...OPERATOR, ...env }, options)
  const body = 'a text of some length'
  const funding = chain.spend({ outputs: [{ satoshis: 100, lockingScript: p2pkh(0) }] })
  const script = inscriptionScript({ contentType: 'text/plain', body: utf8(body), lock: OPEN_LOCK })
  const letter = chain.move(funding, 0, script)
  const mints = [chain.genesis, chain.mint('a')]
  for (const each of mints) await server.take(beefOf(each))
  await server.take(beefOf(letter, { with: [funding] }), ['tm_ordinals'])
  const content = `/content/${letter.outpoint(0)}`
  const metadata = `/svc/gateway/metadata/${letter.outpoint(0)}`
  const names = ['', 'origin/', 'mine/'].map((path) => `/svc/names/${path}${path === 'mine/' ? 'ab' : 'a'}`)
  const paths = [content, `${content}:0`, `${content}:-1`, metadata, `${metadata}:-1`, ...names]
  return { chain, server, letter, body, content, metadata, paths }
}

test('what was answered is answered again without its route, the same to the byte', async () => {
  const { server, paths } = await filled()
  const first = await Promise.all(paths.map((path) => server.ask(path)))
  const { caches } = server.node
  const { hits, misses } = caches.answers
  const again = await Promise.all(paths.map((path) => server.ask(path)))
  expect(again.map(({ status }) => status)).toEqual(paths.map(() => 200))
  expect(again.map(lastingHeaders)).toEqual(first.map(lastingHeaders))
  expect(again.map(({ body }) => body.toString())).toEqual(first.map(({ body }) => body.toString()))
  expect(caches.answers).toEqual({ hits: hits + paths.length, misses })
})

test('a start asks for the newest tip, and that request is neither counted nor logged', async () => {
  const { server, letter } = await filled()
  const { config, overlay, graph } = server.node
  const app = createApp({ config, overlay, graph, ping: () => graph.ping(), logger: SILENT })
  const answers: [string | undefined, ServerResponse][] = []
  const watched = (request: IncomingMessage, response: ServerResponse): void => {
    answers.push([request.url, response])
    app(request, response)
  }
  const told: unknown[] = []
  const log = pino({}, { write: (line: string) => void told.push(JSON.parse(line).url) })
  const options = { app: Object.assign(watched, app), limits: config.limits, log }
  const started = openHttpServer({ ...options, onEnd: ({ request }) => void told.push(request.url) })
  await listen(started, { host: '0.0.0.0', port: 0 })
  try {
    await warmUp(started, graph)
    await until(() => answers.some(([, { closed }]) => closed))
    const newest = `/content/${letter.outpoint(0)}:-1`
    expect(answers.map(([path, { statusCode }]) => [path, statusCode])).toEqual([[newest, 200]])
    const { port } = started.address() as AddressInfo
    await (await fetch(`http://127.0.0.1:${port}/version`)).text()
    await until(() => told.length === 2)
    expect(told).toEqual(['/version', '/version'])
  } finally {
    await started.finish()
  }
})

test('it is counted, logged and identified as from its route', async () => {
  const lines: Record<string, unknown>[] = []
  const logger = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const { server, content } = await filled({ LOG_REQUESTS: 'true' }, { logger })
  for (let at = 0; at < 3; at++) await server.ask(content, { headers: { 'X-Request-Id': `asked-${at}` } })
  const logged = lines.filter(({ url }) => url === content)
  const each = logged.map(({ requestId, status }) => `${requestId} ${status}`)
  expect(each).toEqual(['asked-0 200', 'asked-1 200', 'asked-2 200'])
  const counted =
    'minetree_http_request_duration_seconds_count{route="/content/*",method="GET",status="2xx"} 3'
  expect((await server.ask('/metrics')).body.toString()).toContain(counted)
})

test('a client over its limit is refused what is in memory', async () => {
  const { server, content } = await filled({ READS_PER_MINUTE: '3', TRUST_PROXY: '1' })
  const asked = () => server.ask(content, { headers: { 'X-Forwarded-For': '192.0.2.1' } })
  const left = [await asked(), await asked(), await asked()].map(({ headers }) => headers.ratelimit)
  expect(left).toEqual([2, 1, 0].map((each) => expect.stringContaining(`r=${each};`)))
  expectError(await asked(), { status: 429, code: 'RATE_LIMITED' })
})

test('a record in a list is read once, until something changes', async () => {
  const { chain, server, letter, body } = await filled()
  const [here, tip] = [letter.outpoint(0), `${letter.outpoint(0)}:-1`]
  const listed = async () => {
    const { misses } = server.node.caches.answers
    const { json } = await server.ask('/svc/gateway/metadata', posted([here, tip]))
    const records = json as Record<string, MetadataRecord | null>
    return {
      ...{ here: records[here]?.spent, tip: records[tip]?.outpoint },
      isRead: server.node.caches.answers.misses > misses,
    }
  }
  const unspent = { here: false, tip: here }
  expect(await listed()).toEqual({ ...unspent, isRead: true })
  expect(await listed()).toEqual({ ...unspent, isRead: false })
  const next = chain.move(letter, 0, p2pkh(1))
  await server.submit(beefOf(next, { with: [letter] }), ['tm_ordinals'])
  const spent = { here: true, tip: next.outpoint(0) }
  expect([await listed(), await listed()]).toEqual([
    { ...spent, isRead: true },
    { ...spent, isRead: false },
  ])
  await server.block({ sha256: sha256(utf8(body)).toString('hex') })
  expect(await listed()).toMatchObject({ here: undefined, tip: undefined })
})

test('nothing in memory is sent while the index is rebuilt', async () => {
  const { server, content } = await filled()
  const { config, overlay, graph } = server.node
  let state: 'equal' | 'rebuilding' = 'equal'
  const index = () => ({ state, done: 0.5 })
  const app = createApp({ config, overlay, graph, index, ping: async () => {}, logger: SILENT })
  const host = await serving(app)
  expect((await ask(host.url, content)).status).toBe(200)
  state = 'rebuilding'
  expectError(await ask(host.url, content), { status: 503, code: 'NOT_READY' })
})

test('a handler ahead of the routes that throws is answered as an error', async () => {
  const errors: ErrorRequestHandler = (error, _request, response, _next) => {
    response.status(500).end(String(error))
  }
  const throwing: RequestHandler = () => {
    throw new Error('a fault')
  }
  const passing: RequestHandler = (_request, _response, next) => next()
  for (const handlers of [
    [throwing, passing],
    [passing, throwing],
  ] satisfies [RequestHandler, RequestHandler][]) {
    const hosted = { hosts: { read: () => undefined }, gate: passing, answer: () => {}, errors }
    const host = await serving(aheadOfRoutes(express(), { handlers, errors, hosted }))
    const answer = await ask(host.url, '/')
    expect([answer.status, answer.body.toString()]).toEqual([500, 'Error: a fault'])
  }
})

test('content by outpoint and origins of names stay in memory whatever is submitted, and the tip does not', async () => {
  const { chain, server, letter, content } = await filled()
  const tip = `/svc/gateway/metadata/${letter.outpoint(0)}:-1`
  const paths = [content, '/svc/names/origin/a', '/svc/names/mine/ab', `${content}:-1`, tip]
  for (const path of paths) await server.ask(path)
  const next = chain.move(letter, 0, p2pkh(1))
  await server.submit(beefOf(next, { with: [letter] }), ['tm_ordinals'])
  await server.submit(beefOf(chain.mint('ab')))
  const { answers } = server.node.caches
  const fromMemory: string[] = []
  for (const path of paths) {
    const { misses } = answers
    expect((await server.ask(path)).status).toBe(path === '/svc/names/mine/ab' ? 404 : 200)
    if (answers.misses === misses) fromMemory.push(path)
  }
  expect(fromMemory).toEqual([content, '/svc/names/origin/a'])
  expect((await server.ask(tip)).json).toMatchObject({ outpoint: next.outpoint(0), sequence: 1 })
})
