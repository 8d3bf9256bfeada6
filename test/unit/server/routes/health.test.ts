import { expectError } from '../../../support/gateway/expect-error.js'
import { whileReplaced } from '../../../support/gateway/faults.js'
import { openSocket } from '../../../support/server/connections.js'
import { useServers } from '../../../support/server/test-server.js'
import { until } from '../../../support/server/waiting.js'

const servers = useServers()

test('a host says of itself what the OpenAPI document of overlay-express has', async () => {
  const server = await servers.start({ HOSTING_URL: 'https://names.example' })
  const health = async (): Promise<Record<string, unknown>> =>
    (await server.ask('/health')).json as Record<string, unknown>
  const { service, checks, live } = await health()
  expect({ live, service }).toEqual({
    live: true,
    service: {
      ...{ name: 'minetree', advertisableFQDN: 'names.example', port: Number(new URL(server.url).port) },
      ...{ network: 'main', uptimeMs: expect.any(Number), topicManagerCount: 2, lookupServiceCount: 2 },
    },
  })
  const check = { critical: true, status: 'ok', durationMs: expect.any(Number) }
  expect(checks).toEqual([
    { ...check, name: 'process', scope: 'live' },
    ...['store', 'space', 'shutdown', 'index', 'tracker'].map((name) => ({ ...check, name, scope: 'ready' })),
  ])
  await whileReplaced(server.node.graph, 'ping', {
    by: () => Promise.reject(new Error('gone')),
    during: async () => {
      const { checks, ready, reasons } = await health()
      const message = 'the store does not respond'
      expect(checks).toContainEqual({ ...check, name: 'store', scope: 'ready', status: 'error', message })
      expect([ready, reasons]).toEqual([false, { store: message }])
      expectError(await server.ask('/health/ready'), { status: 503, code: 'NOT_READY', error: message })
    },
  })
})

test('those who ask at the same time ask the store once', async () => {
  const server = await servers.start()
  let pings = 0
  let answer = (): void => {}
  const mayAnswer = new Promise<void>((resolve) => (answer = resolve))
  await whileReplaced(server.node.graph, 'ping', {
    by: async () => {
      pings++
      await mayAnswer
    },
    during: async () => {
      const asked = ['/health', '/health/ready', '/health', '/health/ready'].map((path) => server.ask(path))
      // Answered last, so that the others have come by then.
      await server.ask('/health/live')
      answer()
      for (const { status } of await Promise.all(asked)) expect(status).toBe(200)
      expect(pings).toBe(1)
      await server.ask('/health/ready')
      expect(pings).toBe(2)
    },
  })
})

test('a host that is shutting down is not ready, and says that the connection ends', async () => {
  const server = await servers.start()
  let isAsked = false
  let answer = (): void => {}
  const mayAnswer = new Promise<void>((resolve) => (answer = resolve))
  await whileReplaced(server.node.graph, 'ping', {
    by: async () => {
      isAsked = true
      await mayAnswer
    },
    during: async () => {
      const { send, heard, ended } = await openSocket(server.url)
      send('GET /health/ready HTTP/1.1\r\nHost: x\r\n\r\n')
      await until(() => isAsked)
      const stopped = server.stop()
      answer()
      await ended
      const last = /^HTTP\/1\.1 503 [\s\S]*\r\nConnection: close\r\n[\s\S]*"the host is shutting down"/
      expect(heard()).toMatch(last)
      await stopped
    },
  })
})
