import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import fc from 'fast-check'
import { PROFILES } from '../../backend/src/protocol/profile.js'
import { createApp } from '../../src/server/app.js'
import { clientKey } from '../../src/server/http/gates.js'
import { openHttpServer } from '../../src/server/http/http-server.js'
import { type Images, openImages } from '../../src/server/images/images.js'
import type { Node } from '../../src/server/node.js'
import { imageProgram } from '../../test/support/images/pictures.js'
import { rounds } from '../../test/support/nightly.js'
import {
  type Hosts,
  openapiHosts,
  openapiRequests,
  withinAMinute,
} from '../../test/support/server/openapi-requests.js'
import {
  type Answer,
  ask,
  SILENT,
  submission,
  type TestServer,
  useServers,
} from '../../test/support/server/test-server.js'
import { exchange } from '../fuzz/exchange.js'
import { hostileHeaders, partHeaders } from '../fuzz/inputs/headers.js'
import { reads } from '../fuzz/inputs/reads.js'
import { requestLines } from '../fuzz/inputs/request-lines.js'
import { type FuzzRequest, get, isRaw } from '../fuzz/request.js'
import { fuzzWorld } from '../fuzz/world.js'

// Answers ahead of Express are the same as those of Express alone: a second server over the same store caches nothing, so all its
// answers come from the routes. Requests with cached answers are repeated with every kind of header.

const { start } = useServers()
const closing: (() => Promise<void>)[] = []
afterAll(async () => {
  for (const close of closing) await close()
})

/**
 * A server with only the routes of a node, whose pages link to the hosts of the node's own server.
 *
 * @param options.isCatchingUp Whether the node follows a source that does not respond.
 * @param options.images Makes its images.
 */
async function serveRoutes(
  { node, url }: Pick<TestServer, 'node' | 'url'>,
  { isCatchingUp = false, images }: { isCatchingUp?: boolean; images?: Images | undefined } = {},
): Promise<string> {
  const { config, overlay, graph, store, index, ancestors } = node
  // A closed store cannot be read.
  const followed = await graph.settings.get('tree_followed').catch(() => undefined)
  const { asOf } = JSON.parse(followed ?? '{}')
  const progress = {
    ...{ asOf, isCatchingUp, isIncomplete: isCatchingUp },
    progress: () => ({ asked: 0, coins: 0 }),
  }
  const app = createApp({
    ...{ config, overlay, progress, logger: SILENT },
    graph: store,
    ping: () => graph.ping(),
    index: () => index.status,
    port: () => Number(new URL(url).port),
    images,
    ...(config.chainSources && { ancestors }),
  })
  const server = openHttpServer({ app, limits: config.limits, onEnd: () => {} })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  closing.push(() => server.finish())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Counts the answers that come from a node's memory. */
function countHits({ graph }: Node): () => number {
  const { cachedAnswer } = graph
  let hits = 0
  graph.cachedAnswer = (key) => {
    const answer = cachedAnswer.call(graph, key)
    if (answer !== undefined) hits++
    return answer
  }
  return () => hits
}

/** The parts of an answer that are the same each time; limits start again at different seconds. */
function lasting({ status, headers, body }: Answer): object {
  const { date: _, 'x-request-id': __, 'retry-after': wait, ratelimit, ...others } = headers
  const left = typeof ratelimit === 'string' && ratelimit.replace(/t=\d+/, '')
  return { status, headers: others, wait: status === 429 || wait, left, body: withoutPorts(body) }
}

/** Removes ports: the addresses of sites have the requested port, which differs between the two servers. */
function withoutPorts(received: Buffer): string {
  return received.toString('latin1').replace(/(localhost):\d{5}/g, '$1')
}

/** Reports of a host on itself, which change with every request; also requested as by a proxy (RFC 9112 3.2.2). */
const ABOUT_THE_HOST = /^(?:https?:\/\/[^/]*)?\/+(?:health|metrics)/i

/** Hosts whose routes depend only on their stores, settings and states. */
const COMPARED = ['well', 'empty', 'broken', 'flooded', 'awaiting', 'rebuilding'] as const

/** Hosts that make images. */
const MAKES_IMAGES: ReadonlySet<keyof Hosts> = new Set(['well', 'empty', 'broken', 'awaiting'])

const program = await imageProgram()
const { hosts, stored } = await openapiHosts({ start, profile: 'local' })

test('every request of the OpenAPI document is answered as by the routes', async () => {
  const [gateway = '', names = '', wallets = ''] = [
    PROFILES.local.gatewayPrefixes[0],
    PROFILES.local.namesPrefixes[0],
    PROFILES.local.walletPrefixes[0],
  ]
  const routes = new Map<keyof Hosts, string>()
  const hits = new Map<keyof Hosts, () => number>()
  for (const name of COMPARED) {
    const { config } = hosts[name].node
    const images = MAKES_IMAGES.has(name)
      ? openImages({ ...config, logger: SILENT, clientOf: clientKey, program })
      : undefined
    if (images !== undefined) closing.push(() => images.close())
    routes.set(name, await serveRoutes(hosts[name], { isCatchingUp: name === 'awaiting', images }))
    hits.set(name, countHits(hosts[name].node))
  }
  const flooder = { headers: { 'X-Forwarded-For': '192.0.2.1' } }
  const flood = async (): Promise<void> => {
    await ask(routes.get('flooded') ?? '', '/', flooder)
    await ask(routes.get('flooded') ?? '', '/submit', { ...flooder, method: 'POST' })
  }
  let compared = 0
  for (const [, path, question = {}, name = 'well'] of openapiRequests({ stored, gateway, names, wallets })) {
    const { method = 'GET' } = question
    const url = routes.get(name)
    // The bundled pages are not among these routes.
    const isRoute = !ABOUT_THE_HOST.test(path) && !/^\/(?:mine|my)(?:[/?]|$)/.test(path)
    const isCompared = ['GET', 'HEAD'].includes(method) && isRoute
    if (url === undefined || !isCompared) continue
    // Only answers to clients below their limits can be in memory.
    if (name !== 'flooded') await hosts[name].ask(path)
    await withinAMinute(async () => {
      if (name === 'flooded') await flood()
      const [got, expected] = [await hosts[name].ask(path, question), await ask(url, path, question)]
      expect({ path, name, question, ...lasting(got) }).toEqual({
        ...{ path, name, question },
        ...lasting(expected),
      })
    })
    compared++
  }
  expect(compared).toBeGreaterThan(200)
  expect(hits.get('well')?.()).toBeGreaterThan(50)
})

/** What was received, without the parts that differ each time. */
function lastingBytes(received: Buffer): string {
  return withoutPorts(received).replace(/^(?:Date|X-Request-Id): .*\r\n/gim, '')
}

test('whatever strangers ask for is answered as by the routes', async () => {
  const world = fuzzWorld()
  const server = await start({ SEED: 'none', READS_PER_MINUTE: '0', ...world.settings })
  const { url, node } = server
  for (const { beef, topics } of world.filling)
    expect((await ask(url, '/submit', submission(beef, [...topics]))).status).toBe(200)
  const routes = await serveRoutes(server)
  const hits = countHits(node)
  const { 'whatever else there is': _, ...kinds } = reads(world.prey)
  const known = fc
    .constantFrom(...world.prey.outpoints)
    .chain((outpoint) =>
      fc.constantFrom(
        ...['', ':-1', ':0', '/', '/sub/', '/c.txt'].map((path) => `/content/${outpoint}${path}`),
        ...['', ':-1'].map((path) => `/svc/gateway/metadata/${outpoint}${path}`),
        ...world.prey.names.flatMap((name) =>
          ['', 'origin/', 'mine/'].map((path) => `/svc/names/${path}${name}`),
        ),
      ),
    )
  const asked = fc
    .tuple(fc.constantFrom('GET', 'HEAD', 'OPTIONS', 'PUT'), known, fc.oneof(hostileHeaders, partHeaders))
    .map(([method, target, headers]): FuzzRequest[] => [{ method, target, headers }])
  const requests = fc.oneof(
    { weight: 8, arbitrary: asked },
    ...Object.values(kinds).map((arbitrary) => ({ weight: 1, arbitrary })),
    { weight: 1, arbitrary: requestLines(world.prey) },
  )
  const answers = async (to: string, request: FuzzRequest): Promise<string> =>
    lastingBytes((await exchange(to, request, { patience: 20_000 })).received)
  // The same requests each time, unless other numbers are set.
  const { RUNS, SEED } = process.env
  const numRuns = rounds(200, 600)
  await fc.assert(
    fc.asyncProperty(requests, async (all) => {
      for (const request of all) {
        if (isRaw(request) || ABOUT_THE_HOST.test(request.target)) continue
        await answers(url, get(request.target))
        const expected = await answers(routes, request)
        expect(await answers(url, request)).toBe(expected)
      }
    }),
    {
      numRuns,
      endOnFailure: true,
      seed: Number(SEED ?? (RUNS === undefined ? 1 : Date.now() % 2 ** 31)),
    },
  )
  expect(hits()).toBeGreaterThan(numRuns / 10)
}, 3_600_000)
