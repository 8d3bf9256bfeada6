import { createApp } from '../../../../src/server/app.js'
import { expectError } from '../../../support/gateway/expect-error.js'
import { beefOf, FakeChain } from '../../../support/protocol/fake-chain.js'
import { sendRaw } from '../../../support/server/connections.js'
import { routesOf } from '../../../support/server/express-routes.js'
import { AS_OPERATOR, OPERATOR, SILENT, treeOf, useServers } from '../../../support/server/test-server.js'

// A known path with another method is 405, with what it has in `Allow` (RFC 9110 15.5.6); an unknown path is 404.

const chain = new FakeChain()
const server = await useServers().start({ ...treeOf(chain.deployment), ...OPERATOR, READS_PER_MINUTE: '0' })
await server.submit(beefOf(chain.genesis), ['tm_names', 'tm_ordinals'])
await server.submit(beefOf(chain.mint('a')), ['tm_names', 'tm_ordinals'])

const NOT_ALLOWED = { status: 405, code: 'METHOD_NOT_ALLOWED' }
const OTHER = ['OPTIONS', 'TRACE', 'PUT', 'DELETE', 'PATCH', 'PROPFIND', 'PURGE', 'QUERY']

/** Every path of the server that is a plain text, with something in place of its parameters. */
function paths(): Map<string, Set<string>> {
  const { config, overlay, graph } = server.node
  const app = createApp({ config, overlay, graph, ping: () => graph.ping(), logger: SILENT })
  const found = new Map<string, Set<string>>()
  for (const { method, prefix, path } of routesOf(app.express).routes) {
    if (typeof path !== 'string') continue
    const filled = (prefix + path).replace(/\/\*\w+|\{[^}]*\}/g, '/x').replace(/:\w+/g, 'x')
    found.set(filled, (found.get(filled) ?? new Set()).add(method))
  }
  return found
}

test('every path refuses every method that it does not have, and says which it has', async () => {
  const all = paths()
  expect(all.size).toBeGreaterThan(60)
  for (const [path, methods] of all) {
    // Another route may match it as well: `origins` is a name, too.
    const allow =
      (await server.ask(path, { method: 'PUT', headers: AS_OPERATOR })).headers.allow?.split(', ') ?? []
    expect(allow).toEqual(expect.arrayContaining([...methods, ...(methods.has('GET') ? ['HEAD'] : [])]))
    for (const method of [...OTHER, 'GET', 'HEAD', 'POST'].filter((each) => !allow.includes(each))) {
      const answer = await server.ask(path, { method, headers: AS_OPERATOR })
      const refusal = [path, method, answer.status, answer.headers.allow]
      expect(refusal).toEqual([path, method, 405, allow.join(', ')])
      if (method !== 'HEAD') expect(answer.json).toMatchObject({ code: 'METHOD_NOT_ALLOWED' })
    }
  }
})

test('an error of the overlay has the fields of the overlay', async () => {
  for (const path of ['/submit', '/lookup', '/svc/overlay/submit'])
    for (const method of ['GET', 'OPTIONS', 'PUT'])
      expectError(await server.ask(path, { method }), { ...NOT_ALLOWED, overlay: true })
})

test('content, and hosts that show it, have GET and HEAD', async () => {
  const { port } = new URL(server.url)
  for (const method of [...OTHER, 'POST']) {
    const content = await server.ask(`/content/${'ab'.repeat(32)}_0/a/b`, { method })
    expect([method, content.status, content.headers.allow]).toEqual([method, 405, 'GET, HEAD'])
    const hosted = await server.ask('/a', { method, headers: { Host: `a.localhost:${port}` } })
    expect([method, hosted.status, hosted.headers.allow]).toEqual([method, 405, 'GET, HEAD'])
  }
})

test('a path that has no route is 404 whatever the method, and a preflight is answered everywhere', async () => {
  // In capitals, a path would pass a proxy that keeps it from strangers.
  for (const path of ['/nothing/here', '/METRICS', '/Health'])
    for (const method of [...OTHER, 'GET', 'POST'])
      expectError(await server.ask(path, { method }), { status: 404, code: 'NOT_FOUND' })
  for (const path of ['/nothing', '/svc/names/origins', '/submit', '/content/x']) {
    const headers = { Origin: 'https://a.test', 'Access-Control-Request-Method': 'POST' }
    expect((await server.ask(path, { method: 'OPTIONS', headers })).status).toBe(204)
  }
  expect(await sendRaw(server.url, 'OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n')).toMatch(/^HTTP\/1\.1 204 /)
})

test('without the token, the paths of the operator say nothing', async () => {
  for (const method of OTHER) expect((await server.ask('/admin/block', { method })).status).toBe(401)
})
