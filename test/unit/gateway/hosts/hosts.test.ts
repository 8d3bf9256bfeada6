import { outpointLabel } from '../../../../backend/src/protocol/host-label.js'
import { parseOutpoint } from '../../../../backend/src/protocol/outpoint.js'
import { expectError } from '../../../support/gateway/expect-error.js'
import { hostedServer } from '../../../support/gateway/hosted.js'
import { directory, text } from '../../../support/gateway/site.js'
import { sendRaw } from '../../../support/server/connections.js'
import {
  type Answer,
  AS_OPERATOR,
  lastingHeaders,
  OPERATOR,
  posted,
  useServers,
} from '../../../support/server/test-server.js'

const servers = useServers()
const hosted = await hostedServer(servers, OPERATOR)
const { server, port, on, mine, named, show } = hosted
const SERVICE = `http://localhost${port}`
const labelOf = (outpoint: string): string => `${outpointLabel(parseOutpoint(outpoint))}.c.localhost`

const HTML = '<!doctype html><title>a page</title><script>1</script>'
const INDEX = text(HTML, 'text/html')
const SVG = text('<svg xmlns="http://www.w3.org/2000/svg"/>', 'image/svg+xml')
const SCRIPT = text('self.x = 1', 'text/javascript')
const inner = directory({ '.': '_2', 'index.html': '_1', 'a.txt': '_2' })
/** Its entries: a page, a text, a directory, and a folder whose name is that of a route. */
const site = [
  directory({
    ...{ '.': '_1', 'index.html': '_1', 'a.txt': '_2', sub: '_3', 'sw.js': '_4', content: '_3', mine: '_2' },
    ...{ 'a b': '_2', svg: '_5' },
  }),
  ...[INDEX, text('0123456789'), inner, SCRIPT, SVG],
]
const alice = await named('alice', ...site)
const ORIGIN = alice.mint.outpoint(2)

/** What a host may add, and leave out: everything else is as below `/content/`. */
function withoutHosts(answer: Answer): object {
  const { link, etag, ...lasting } = lastingHeaders(answer)
  const { 'x-name': _, 'origin-agent-cluster': __, 'content-security-policy': ___, ...headers } = lasting
  // The tag names the type, too.
  const type = headers['content-type']?.toString().replace('; charset=utf-8', '')
  const rest = { ...headers, 'content-type': type }
  return { status: answer.status, headers: rest, body: answer.body.toString('latin1') }
}

describe('a name', () => {
  test('shows its ordinal at the tip, with what proves it', async () => {
    const { status, headers, body } = await on('alice.localhost')
    expect({ status, body: body.toString() }).toEqual({ status: 200, body: HTML })
    expect(headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'x-name': 'alice',
      'x-origin': ORIGIN,
      'x-outpoint': alice.site.outpoint(1),
      'cache-control': 'no-cache',
      'origin-agent-cluster': '?1',
      link: `<${SERVICE}/svc/names/proof/alice>; rel="proof", <${SERVICE}/svc/gateway/provenance/${alice.site.outpoint(0)}>; rel="provenance"`,
    })
    // Its own origin: storage, modules and workers are its own.
    expect(headers['content-security-policy']).toBeUndefined()
    for (const [, proof] of String(headers.link).matchAll(/<([^>]*)>/g))
      expect((await server.ask(new URL(proof ?? '').pathname)).status).toBe(200)
  })

  const PLAIN =
    '/ /?a=1 /?raw /index.html /a.txt /a%20b /a%2Ftxt /%zz /missing /sub/a.txt /sub/. /sub/x/y /svg /sw.js'
  const OF_SERVICE = '//a.txt /mine /admin/blocked /health /metrics /svc/names /openapi.json'
  test.each<[path: string, headers: Record<string, string>]>([
    ...`${PLAIN} ${OF_SERVICE}`.split(' ').map((path): [string, Record<string, string>] => [path, {}]),
    ['/a.txt', { Range: 'bytes=2-4' }],
    ['/a.txt', { Range: 'bytes=-3' }],
    ['/a.txt', { Range: 'bytes=90-' }],
    ['/a.txt', { 'If-None-Match': '*' }],
    ['/a.txt', { 'If-Match': '"x"' }],
  ])('answers %s %j as /content/<origin>:-1 does', async (path, headers) => {
    for (const method of ['GET', 'HEAD']) {
      // Twice: the second time, it may come from memory.
      for (const _ of [1, 2]) {
        const own = await on('alice.localhost', path, { method, headers })
        const other = await server.ask(`/content/${ORIGIN}:-1${path}`, { method, headers })
        expect(withoutHosts(own)).toEqual(withoutHosts(other))
        if (own.status < 400) expect(own.headers['x-name']).toBe('alice')
      }
    }
  })

  test('that is a directory without a default shows its index at /', async () => {
    await named('bob', directory({ 'index.html': '_1' }), INDEX)
    for (const query of ['', '?a=1&b=%2F']) {
      const { status, headers, body } = await on('bob.localhost', `/${query}`)
      expect([status, body.toString()]).toEqual([200, HTML])
      expect(headers).toMatchObject({ 'cache-control': 'no-cache', 'x-name': 'bob' })
    }
  })

  test('that is no directory shows itself below every path', async () => {
    await named('file', text('all of it'))
    for (const path of ['/', '/x', '/x/y?raw']) {
      const { status, body } = await on('file.localhost', path)
      expect({ status, body: body.toString() }).toEqual({ status: 200, body: 'all of it' })
    }
  })

  test.each(['GET', 'HEAD'])('that shows its name inscription sends %s on to its page', async (method) => {
    const mint = await mine('al')
    const { status, headers } = await on('al.localhost', '/x?y', { method })
    expect([status, headers.location]).toEqual([302, `${SERVICE}/name/al`])
    const shown = { 'x-origin': mint.outpoint(2), 'x-outpoint': mint.outpoint(2) }
    expect(headers).toMatchObject({ 'cache-control': 'no-cache', 'x-name': 'al', ...shown })
  })

  test('that nobody mined is 404, and says how to mine it', async () => {
    const mineAt = `${SERVICE}/mine?name=nobody`
    const answer = await on('nobody.localhost', '/x')
    const error = `nobody is not claimed. Mine it at ${mineAt}, or run: npx minetree mine nobody --url ${SERVICE}`
    expectError(answer, { status: 404, code: 'NOT_FOUND', error, data: { name: 'nobody', mine: mineAt } })
    const page = await on('nobody.localhost', '/x', { headers: { Accept: 'text/html,*/*;q=0.8' } })
    expect([page.status, page.headers['content-type']]).toEqual([404, 'text/html; charset=utf-8'])
    expect(page.headers['content-security-policy']).toMatch(/^default-src 'none'; style-src 'sha256-/)
    expect(page.headers['cache-control']).toBe('no-store')
    expect(page.body.toString()).toContain(`href="${mineAt}">`)
    expect(page.body.toString()).toContain(`npx minetree mine nobody --url ${SERVICE}<`)
  })

  test('that is transferred shows the same, and what it is given next', async () => {
    const { site: first } = await named('moving', text('first'))
    const shown = async (): Promise<object> => {
      const { body, headers } = await on('moving.localhost')
      return { body: body.toString(), outpoint: headers['x-outpoint'] }
    }
    expect(await shown()).toEqual({ body: 'first', outpoint: first.outpoint(0) })
    const second = await show({ transaction: first, vout: 0 }, 'lock')
    expect(await shown()).toEqual({ body: 'first', outpoint: second.outpoint(0) })
    const third = await show({ transaction: second, vout: 0 }, text('third'))
    expect(await shown()).toEqual({ body: 'third', outpoint: third.outpoint(0) })
  })

  test('that is blocked is 451, and so is blocked content, from memory too', async () => {
    const { site: shown } = await named('banned', text('banned text'))
    expect((await on('banned.localhost')).status).toBe(200)
    for (const subject of [{ name: 'banned' }, { outpoint: shown.outpoint(0) }]) {
      await server.block(subject)
      expectError(await on('banned.localhost'), { status: 451, code: 'BLOCKED' })
      const page = await on('banned.localhost', '/', { headers: { Accept: 'text/html' } })
      expect([page.status, page.headers['content-type']]).toEqual([451, 'text/html; charset=utf-8'])
      expect((await on(labelOf(shown.outpoint(0)))).status).toBe('name' in subject ? 200 : 451)
      await server.unblock(subject)
      expect((await on('banned.localhost')).status).toBe(200)
    }
  })
})

describe('an outpoint', () => {
  const outpoint = alice.site.outpoint(0)

  test.each(['/', '/?raw', '/a.txt', '/sub/a.txt', '/missing', '/x/y'])(
    'answers %s as /content/<outpoint> does, for ever',
    async (path) => {
      const own = await on(labelOf(outpoint), path)
      expect(withoutHosts(own)).toEqual(withoutHosts(await server.ask(`/content/${outpoint}${path}`)))
      expect(own.headers['x-name']).toBeUndefined()
      if (own.status === 200) expect(own.headers['cache-control']).toContain('immutable')
    },
  )

  test('that is not here is not found', async () => {
    expectError(await on(labelOf(`${'ab'.repeat(32)}_1`)), { status: 404, code: 'NOT_FOUND' })
  })

  test.each([
    ...['x.c', '0.c', 'a.b', 'a.c.c', '.c', 'c.c', 'a..c'],
    ...[`${'0'.repeat(55)}.c`, `${'z'.repeat(56)}.c`],
  ])('%s is none', async (labels) => {
    const answer = await on(`${labels}.localhost`)
    expectError(answer, { status: 400, code: labels.endsWith('.c') ? 'BAD_OUTPOINT' : 'BAD_NAME' })
  })

  test('has no host that is the one of the name c', async () => {
    await named('c', text('the name c'))
    expect((await on('c.localhost')).body.toString()).toBe('the name c')
  })
})

describe('a name that is no label', () => {
  const LONG = 'l'.repeat(64)
  test.each(['-h', 'h-', 'xn--h', LONG])('%s is sent on to the host of what it shows', async (name) => {
    const { site: shown } = await named(name, directory({ '.': '_1' }), text(`of ${name}`))
    const { status, headers } = await on(`${name}.localhost`, '/a?b=c')
    const location = `http://${labelOf(shown.outpoint(0))}${port}/a?b=c`
    expect({ status, location: headers.location }).toEqual({ status: 302, location })
    expect(headers).toMatchObject({ 'cache-control': 'no-cache', 'x-name': name })
    expect((await on(labelOf(shown.outpoint(0)))).body.toString()).toBe(`of ${name}`)
  })

  test('of 63 characters is one', async () => {
    await mine(LONG.slice(0, 63))
    expect((await on(`${LONG.slice(0, 63)}.localhost`)).headers.location).toContain('/name/')
  })
})

describe('content by its path on a host that shows other content', () => {
  test.each(['', ':0', '/sub/a.txt', '%3A-1'])('is sandboxed as ever: %j', async (rest) => {
    const path = `/content/${alice.site.outpoint(0)}${rest}`
    for (const host of ['alice.localhost', labelOf(alice.site.outpoint(2))]) {
      const own = await on(host, path)
      const { status, headers, body } = await server.ask(path)
      expect({ status: own.status, body: own.body }).toEqual({ status, body })
      expect(lastingHeaders(own)).toEqual(lastingHeaders(await server.ask(path)))
      if (headers['content-type'] === 'text/html')
        expect(own.headers['content-security-policy']).toMatch(/^sandbox /)
    }
  })

  test('is no service worker of the host', async () => {
    const path = `/content/${alice.site.outpoint(4)}`
    const headers = { 'Service-Worker': 'script' }
    expectError(await on('alice.localhost', path, { headers }), { status: 400, code: 'BAD_BODY' })
    const own = await on('alice.localhost', '/sw.js', { headers })
    expect([own.status, own.headers['content-type']]).toEqual([200, 'text/javascript; charset=utf-8'])
  })

  test('leaves a folder of that name to the site', async () => {
    expect((await on('alice.localhost', '/content/a.txt')).body.toString()).toBe('0123456789')
  })
})

describe('the service', () => {
  test.each([
    ...['localhost', 'localhost.', '127.0.0.1', '[::1]'],
    ...['elsewhere.example', 'alicelocalhost', 'alice.localhost.example'],
  ])('answers on %s', async (host) => {
    expect((await on(host, '/health/live')).status).toBe(200)
    expect((await on(host, '/svc/names/alice')).json).toMatchObject({ name: 'alice' })
  })

  test('has its paths on no host that shows content', async () => {
    await named('file2', text('only this'))
    for (const path of [
      '/mine',
      '/health/live',
      '/metrics',
      '/openapi.json',
      '/svc/names/alice',
      '/capabilities',
    ]) {
      // In memory, as on the service.
      for (const _ of [1, 2]) await server.ask(path)
      const [named, labelled] = [
        await on('file2.localhost', path),
        await on(labelOf(alice.site.outpoint(5)), path),
      ]
      expect([named.status, named.body.toString()]).toEqual([200, 'only this'])
      expect([labelled.status, labelled.body.toString()]).toEqual([200, String(Buffer.from(SVG.body))])
    }
  })

  test.each(['POST', 'PUT', 'DELETE', 'PATCH'])('takes no %s on them', async (method) => {
    for (const path of ['/submit', '/lookup', '/admin/block', '/', '/svc/gateway/metadata', '/arc-ingest']) {
      const answer = await on('alice.localhost', path, { ...posted({}, AS_OPERATOR), method })
      expectError(answer, { status: 405, code: 'METHOD_NOT_ALLOWED' })
    }
  })

  test('answers preflights on them for what they show', async () => {
    const headers = { Origin: 'http://x.example', 'Access-Control-Request-Method': 'GET' }
    const { status, headers: answered } = await on('alice.localhost', '/', { method: 'OPTIONS', headers })
    expect({ status, origin: answered['access-control-allow-origin'] }).toEqual({ status: 204, origin: '*' })
  })
})

describe('the host of a request', () => {
  test.each([
    ['in capitals', 'ALICE.LocalHost'],
    ['with a dot at its end', 'alice.localhost.'],
    ['without a port', 'alice.localhost:'],
  ])('may be written %s', async (_, host) => {
    const own = await on(host, '/a.txt')
    expect([own.body.toString(), own.headers['x-name']]).toEqual(['0123456789', 'alice'])
  })

  const LIVE = 'GET /health/live HTTP/1.1'
  const OK = /^HTTP\/1.1 200[\s\S]*"ok"/
  test.each<[string, string[], RegExp]>([
    ['is missing in HTTP/1.0: the service', ['GET /health/live HTTP/1.0'], OK],
    ['is missing in HTTP/1.1', ['GET / HTTP/1.1'], /^HTTP\/1.1 400/],
    ['is empty: the service', [LIVE, 'Host:'], OK],
    [
      'occurs twice',
      [LIVE, 'Host: localhost', 'host: alice.localhost'],
      /^HTTP\/1.1 400[\s\S]*more than one Host/,
    ],
    ['is a list', ['GET / HTTP/1.1', 'Host: localhost, alice.localhost'], /^HTTP\/1.1 400/],
    ['has user information', ['GET / HTTP/1.1', 'Host: a@alice.localhost'], /^HTTP\/1.1 400/],
    ['has a port that is none', ['GET / HTTP/1.1', 'Host: alice.localhost:80x'], /^HTTP\/1.1 400/],
    ['has bytes beyond ASCII', ['GET / HTTP/1.1', 'Host: al\xefce.localhost'], /^HTTP\/1.1 400/],
    [
      'is too long',
      ['GET / HTTP/1.1', `Host: ${'a'.repeat(256)}.localhost`],
      /^HTTP\/1.1 400[\s\S]*BAD_NAME/,
    ],
    [
      'is in the target, which counts',
      ['GET http://alice.localhost/a.txt HTTP/1.1', 'Host: localhost'],
      /^HTTP\/1.1 200[\s\S]*X-Name: alice[\s\S]*0123456789$/,
    ],
    [
      'is in the target: the service',
      ['GET http://localhost/health/live HTTP/1.1', 'Host: alice.localhost'],
      OK,
    ],
    [
      'is in the target, with user information',
      ['GET http://a@alice.localhost/ HTTP/1.1', 'Host: localhost'],
      /^HTTP\/1.1 400/,
    ],
    ['is no path', ['OPTIONS * HTTP/1.1', 'Host: alice.localhost'], /^HTTP\/1.1 204/],
    [
      'is named by a proxy that is not trusted',
      [LIVE, 'Host: localhost', 'X-Forwarded-Host: alice.localhost'],
      OK,
    ],
  ])('%s, which has one answer', async (_, lines, expected) => {
    const sent = [...lines, 'Connection: close'].join('\r\n')
    expect(await sendRaw(server.url, `${sent}\r\n\r\n`)).toMatch(expected)
  })

  test.each(['Host: x\r\nHost: x', 'Host: a b'])(
    'is refused where names have no hosts, too: %s',
    async (lines) => {
      const { url } = await servers.start({ GATEWAY_HOST: 'none' })
      expect(await sendRaw(url, `${LIVE}\r\n${lines}\r\nConnection: close\r\n\r\n`)).toMatch(/^HTTP\/1.1 400/)
    },
  )
})

describe('behind a proxy that is trusted', () => {
  const PROXIED = { TRUST_PROXY: '1', GATEWAY_HOST: 'names.example' }

  test('the proxy names host and scheme, unless the host is one of ours already', async () => {
    const { named: give, on: ask } = await hostedServer(servers, PROXIED)
    await give('alice', text('of alice'))
    await give('bob', text('of bob'))
    const shown = async (host: string, headers: Record<string, string>): Promise<unknown> =>
      (await ask(host, '/', { headers })).headers['x-name']
    for (const [host, forwarded, name] of [
      // It was replaced on the way.
      ['10.0.0.7:8080', 'alice.names.example', 'alice'],
      ['minetree:8080', 'ALICE.names.example:443', 'alice'],
      // The last proxy appends: what stands before was sent by the client.
      ['minetree:8080', 'bob.names.example, alice.names.example', 'alice'],
      // Nobody can make the answer of one host that of another.
      ['alice.names.example', 'bob.names.example', 'alice'],
    ] as const)
      expect(await shown(host, { 'X-Forwarded-Host': forwarded })).toBe(name)
    const headers = { 'X-Forwarded-Host': 'bob.names.example' }
    expect((await ask('names.example', '/health/live', { headers })).json).toMatchObject({ status: 'ok' })
    for (const [host, scheme, link] of [
      ['alice.names.example:', 'https', '<https://names.example/svc/names/proof/alice>'],
      ['alice.names.example:8443', 'javascript', '<http://names.example:8443/svc/names/proof/alice>'],
    ] as const) {
      const { headers } = await ask(host, '/', { headers: { 'X-Forwarded-Proto': scheme } })
      expect(headers.link).toContain(link)
    }
  })

  test('the URLs in a feed are below HOSTING_URL or relative, and never of the host that is asked for', async () => {
    const { on: ask } = await hostedServer(servers, PROXIED)
    const selfOf = async (headers: Record<string, string>, on = ask): Promise<string | undefined> => {
      const { body } = await on('minetree:8080', '/feeds/names.atom', { headers })
      return /<link rel="self" href="([^"]*)"/.exec(body.toString())?.[1]
    }
    const proxied = { 'X-Forwarded-Host': 'node.example', 'X-Forwarded-Proto': 'https' }
    expect([await selfOf(proxied), await selfOf({})]).toEqual(['/feeds/names.atom', '/feeds/names.atom'])
    const named = await hostedServer(servers, { HOSTING_URL: 'https://node.example/' })
    expect(await selfOf({}, named.on)).toBe('https://node.example/feeds/names.atom')
  })
})

describe('settings', () => {
  test('HOSTING_URL is where the service is, and its host is its own below GATEWAY_HOST as well', async () => {
    const { on: ask, mine: mined } = await hostedServer(servers, {
      HOSTING_URL: 'https://gateway.names.example/base/',
      GATEWAY_HOST: 'names.example',
    })
    expect((await ask('gateway.names.example', '/health/live')).status).toBe(200)
    await mined('n')
    expect((await ask('n.names.example')).headers.location).toBe('https://gateway.names.example/base/name/n')
    expect((await ask('n.localhost', '/health/live')).status).toBe(200)
  })

  test('without GATEWAY_HOST every host is the service’s', async () => {
    const { on: ask, mine: mined } = await hostedServer(servers, { GATEWAY_HOST: 'none' })
    await mined('n')
    for (const host of ['n.localhost', 'anything.example'])
      expect((await ask(host, '/health/live')).status).toBe(200)
  })

  test('with SERVICE_HOSTS no other host is', async () => {
    const { on: ask } = await hostedServer(servers, { SERVICE_HOSTS: 'a.example, B.example' })
    for (const host of ['a.example', 'b.example', 'localhost', '127.0.0.1', '[::1]'])
      expect((await ask(host, '/health/live')).status).toBe(200)
    for (const host of ['rebound.example', 'xa.example', '2130706433', '0x7f.1'])
      expectError(await ask(host, '/health/live'), { status: 404, code: 'NOT_FOUND' })
  })

  test('CONTENT_REDIRECT sends pages below /content/ on to the origin of their outpoint', async () => {
    const { on: ask, named: give, port: own } = await hostedServer(servers, { CONTENT_REDIRECT: 'true' })
    const { mint, site: shown } = await give('alice', ...site)
    const label = labelOf(shown.outpoint(0))
    const at = (path: string): string => `http://${label}${own}${path}`
    for (const [path, location] of [
      [`/content/${shown.outpoint(0)}`, at('/')],
      [`/content/${shown.outpoint(0)}/index.html?a=b`, at('/index.html?a=b')],
      [`/content/${mint.outpoint(2)}:-1/svg`, at('/svg')],
      [`/content/${shown.outpoint(0)}//x`, undefined],
      [`/content/${shown.outpoint(0)}/a.txt`, undefined],
      [`/content/${shown.outpoint(0)}/sw.js`, undefined],
      [`/content/${shown.outpoint(0)}?raw`, undefined],
      [`/content/${shown.outpoint(5)}`, `http://${labelOf(shown.outpoint(5))}${own}/`],
    ] as const) {
      for (const host of ['localhost', 'alice.localhost']) {
        const { status, headers } = await ask(host, path)
        expect({ path, location: headers.location }).toEqual({ path, location })
        if (location !== undefined) expect(headers['cache-control']).toBe('no-cache')
        else expect([200, 404]).toContain(status)
      }
    }
    const page = await ask(label, '/')
    expect({ status: page.status, policy: page.headers['content-security-policy'] }).toEqual({ status: 200 })
  })

  test('CONTENT_SECURITY_POLICY counts on hosts too, without the sandbox', async () => {
    const policy = "frame-ancestors 'self'"
    const { on: ask, named: give } = await hostedServer(servers, { CONTENT_SECURITY_POLICY: policy })
    await give('alice', INDEX)
    expect((await ask('alice.localhost')).headers['content-security-policy']).toBe(policy)
  })
})

test('reads on hosts are counted, logged and limited like any other', async () => {
  const limited = await hostedServer(servers, { READS_PER_MINUTE: '3', TRUST_PROXY: '1' })
  const { on: ask } = limited
  await limited.named('alice', text('x'))
  const headers = { 'X-Forwarded-For': '198.51.100.7' }
  const statuses: number[] = []
  for (const path of ['/', '/admin', '/health', '/submit', '/'])
    statuses.push((await ask('alice.localhost', path, { headers })).status)
  expect(statuses).toEqual([200, 200, 200, 429, 429])
  const page = await ask('alice.localhost', '/', { headers: { ...headers, Accept: 'text/html' } })
  expect([page.status, page.headers['retry-after']]).toEqual([429, expect.any(String)])
  const { body } = await limited.server.ask('/metrics')
  expect(String(body)).toMatch(
    /request_duration_seconds_count\{route="name host",method="GET",status="2xx"\} 3/,
  )
})
