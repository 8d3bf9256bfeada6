import type { HeadersStatus } from '../../../../src/chain/sources/status.js'
import type { OpenapiDocument } from '../../../../src/gateway/openapi/document.js'
import { createApp } from '../../../../src/server/app.js'
import { packageVersion } from '../../../../src/server/config/package-info.js'
import type { ChainParts, ChainStatus } from '../../../../src/server/telemetry/chain-status.js'
import { saidParts } from '../../../support/server/chain-parts.js'
import { serving } from '../../../support/server/connections.js'
import { HeaderChain } from '../../../support/server/header-chain.js'
import { HeaderService, headersSettings, startHeaderService } from '../../../support/server/header-service.js'
import { contractOf } from '../../../support/server/openapi-contract.js'
import { type Answer, ask, SILENT, untilReady, useServers } from '../../../support/server/test-server.js'
import { until } from '../../../support/server/waiting.js'

const servers = useServers()

/** A host with these parts, over HTTP. */
async function hostWith(chain: ChainParts, reasons: Record<string, string> = {}) {
  const { node } = await servers.start()
  const { config, overlay, graph } = node
  const readiness = Object.fromEntries(Object.entries(reasons).map(([part, reason]) => [part, () => reason]))
  const ping = () => graph.ping()
  const front = await serving(createApp({ config, overlay, graph, ping, readiness, chain, logger: SILENT }))
  return async (path: string): Promise<Answer> => {
    const answer = await ask(front.url, path)
    const document = (await ask(front.url, '/openapi.json')).json as OpenapiDocument
    expect(contractOf(document).judge({ path, question: {}, answer }).complaints).toEqual([])
    // What other suites of this process have found damaged.
    const { damaged: _, ...json } = answer.json as Record<string, unknown>
    return { ...answer, json }
  }
}

test('a host says how far it has followed the chain, and how each part of it is doing', async () => {
  const { said, parts } = saidParts()
  const get = await hostWith(parts)
  const { status, json } = await get('/health')
  expect({ status, json }).toEqual({
    status: 200,
    json: {
      ...{ version: packageVersion(), status: 'ok', live: true, ready: true, reasons: {} },
      ...{ height: 900_120, lag: 120, contradictions: 6 },
      ...said,
      ...{ index: { state: 'equal', done: 1 }, refused: {} },
      ...{ service: expect.anything(), checks: expect.anything() },
    },
  })
})

test('parts that are not configured are missing from the answer', async () => {
  const get = await hostWith({})
  expect(Object.keys((await get('/health')).json as object)).toEqual([
    ...['version', 'status', 'live', 'ready', 'reasons', 'index', 'refused', 'service', 'checks'],
  ])
  const { parts } = saidParts()
  const follows = await hostWith({ follower: parts.follower })
  const json = (await follows('/health')).json as object
  expect(json).toHaveProperty('follow')
  for (const field of ['height', 'lag', 'headers', 'ancestors', 'sources', 'contradictions'])
    expect(json).not.toHaveProperty(field)
})

test('a lag is missing while it is unknown, and not below 0', async () => {
  const { said, parts } = saidParts()
  const get = await hostWith(parts)
  said.follow.height = 900_121
  expect((await get('/health')).json).toMatchObject({ lag: 0 })
  said.follow.height = undefined
  said.headers.sources = undefined
  const json = (await get('/health')).json as Record<string, object>
  expect(json).toMatchObject({ height: 900_120 })
  expect(json).not.toHaveProperty('lag')
  expect(json.follow).not.toHaveProperty('height')
  expect(json.headers).not.toHaveProperty('sources')
})

test('errors and reasons show strangers neither keys nor control characters, and are short', async () => {
  const { said, parts } = saidParts()
  const message = `https://user:pass-word@a.example/v1/key-0123?token=secret answered \x1b[2J\u202e ${'x'.repeat(100_000)}`
  const lastError = { at: 1, message }
  Object.assign(said.headers, { lastError })
  Object.assign(said.ancestors, { lastError })
  for (const each of [said.follow, ...said.sources]) each.lastError = lastError
  const get = await hostWith(parts, { space: message })
  const health = await get('/health')
  const ready = await get('/health/ready')
  expect([health.status, ready.status]).toEqual([503, 503])
  for (const { body } of [health, ready]) {
    expect(body.toString()).not.toMatch(/user|pass-word|key-0123|secret|\p{C}/u)
    expect(body.length).toBeLessThan(5000)
  }
  const cleaned = 'https://a.example answered \\u001b[2J\\u202e'
  expect(health.json).toMatchObject({
    reasons: { space: expect.stringContaining(cleaned) },
    headers: { lastError: { at: 1, message: expect.stringContaining(cleaned) } },
  })
})

test('a server shows the height of its source of headers, and the last error of that, without the key in its URL', async () => {
  const headers = new HeaderChain(900_000)
  const service = new HeaderService(headers)
  const front = await serving((request, response) => {
    request.url = request.url?.replace(/^\/of\/a-key\b/, '') ?? ''
    service.listener(request, response)
  })
  const settings = headersSettings(headers, `${front.url}/of/a-key`)
  const server = await servers.start({ ...settings, HEADERS_POLL_MS: '10' })
  const health = async () => (await server.ask('/health')).json as { height?: number; headers: HeadersStatus }
  await until(async () => (await health()).height === 900_000)
  headers.grow(2)
  await until(async () => (await health()).height === 900_002)
  expect((await server.ask('/metrics')).body.toString()).toContain('\nminetree_chain_height 900002\n')
  await front.close()
  const { message } = await until(async () => (await health()).headers.sources?.[0]?.lastError)
  expect(message).toContain(front.url)
  expect(message).not.toContain('a-key')
  const { json } = await server.ask('/health')
  expect(json).toMatchObject({ height: 900_002 })
  expect(JSON.stringify(json)).not.toContain('a-key')
})

test('a server that fetches block headers is ready once it has them, and says how far it is before', async () => {
  const headers = new HeaderChain(900_000)
  headers.grow(3)
  const { hash: checkpoint } = headers.branch.block(900_000)?.header ?? {}
  const { url, service } = await startHeaderService(headers)
  service.mood = 'fails'
  const server = await servers.start({
    ...{ CHAIN_TRACKER: 'headers', HEADERS_SOURCES: `junglebus=${url}`, HEADERS_POLL_MS: '25' },
    HEADERS_CHECKPOINT: `900000:${checkpoint}`,
  })
  const health = async () => await server.ask('/health')
  const before = await until(async () => {
    const answer = await health()
    return (answer.json as ChainStatus).headers?.sources?.[0]?.failures ? answer : undefined
  })
  const tracker = 'block headers are being fetched; there are none yet'
  expect(before.status).toBe(503)
  expect(before.json).toMatchObject({ ready: false, reasons: { tracker } })
  expect(before.json).not.toHaveProperty('height')
  expect((await server.ask('/health/ready')).json).toMatchObject({ error: tracker })

  service.mood = 'answers'
  await untilReady(server)
  const { height, hash, time } = headers.bestTip
  expect((await health()).json).toMatchObject({
    ...{ ready: true, reasons: {}, height },
    headers: { height, hash, time, from: 900_000, sources: [{ name: `junglebus ${url}` }] },
  })
  const metrics = (await server.ask('/metrics')).body.toString()
  expect(metrics).toContain(`minetree_source_failures_total{use="headers",source="junglebus ${url}"}`)
})
