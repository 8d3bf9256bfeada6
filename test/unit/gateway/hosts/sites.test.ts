import { gzipSync } from 'node:zlib'
import { concatBytes } from '../../../../backend/src/protocol/bytes.js'
import { outpointLabel } from '../../../../backend/src/protocol/host-label.js'
import { parseOutpoint } from '../../../../backend/src/protocol/outpoint.js'
import { GraphReads } from '../../../../backend/src/read/fact-store.js'
import { expectError } from '../../../support/gateway/expect-error.js'
import { whileReplaced } from '../../../support/gateway/faults.js'
import { hostedServer } from '../../../support/gateway/hosted.js'
import { directory, type File, folder, text } from '../../../support/gateway/site.js'
import { beefOf, bitcomTail, p2pkh } from '../../../support/protocol/fake-chain.js'
import { type Answer, type Question, useServers } from '../../../support/server/test-server.js'

const hosted = await hostedServer(useServers())
const { server, chain, on, named, show } = hosted
const labelOf = (outpoint: string): string => `${outpointLabel(parseOutpoint(outpoint))}.c.localhost`

/** The hosts of a site: that of a name, and that of its outpoint. */
async function hostsOf(name: string, files: File[]): Promise<[name: string, outpoint: string]> {
  const { site } = await named(name, ...files)
  return [`${name}.localhost`, labelOf(site.outpoint(0))]
}

/** Status, and what is shown or where it leads. */
const told = ({ status, headers, body }: Pick<Answer, 'status' | 'headers' | 'body'>): string =>
  `${status} ${headers.location ?? body.toString()}`

/** How many bodies are read. */
async function readsDuring(during: () => Promise<void>): Promise<number> {
  const { content } = server.node.graph.served
  const held = content.chunks.bind(content)
  let reads = 0
  const by: typeof held = (...asked) => {
    reads++
    return held(...asked)
  }
  await whileReplaced(content, 'chunks', { by, during })
  return reads
}

const SITE = {
  'index.html': 'home',
  'about.html': 'about',
  'both.html': 'the page of both',
  'both/index.html': 'the folder of both',
  'docs/index.html': 'docs',
  'docs/guide.html': 'guide',
  'docs/deep/page/index.html': 'deep',
  'bare/file.txt': 'bare file',
  'folder.html/index.html': 'a folder that is called like a page',
  '\\evil.example/index.html': 'a folder that is called like a host',
  'a b/index.html': 'a folder with a space',
}

describe('a path of a site', () => {
  let hosts: string[] = []
  beforeAll(async () => {
    hosts = await hostsOf('paths', folder(SITE))
  })

  test.each([
    ['/', '200 home'],
    ['/index.html', '200 home'],
    // The exact entry, the entry with its ending, a folder.
    ['/about.html', '200 about'],
    ['/about', '200 about'],
    ['/about?a=b', '200 about'],
    ['/both', '200 the page of both'],
    ['/both/', '200 the folder of both'],
    ['/docs', '302 /docs/'],
    ['/docs?a=//b', '302 /docs/?a=//b'],
    ['/docs/', '200 docs'],
    ['/docs/guide', '200 guide'],
    ['/docs/deep/page', '302 /docs/deep/page/'],
    ['/docs/deep/page/', '200 deep'],
    ['/bare', '302 /bare/'],
    ['/folder', '200 home'],
    // A folder is sent on to by its own name, and by nothing that is another host.
    ['/%64ocs', '302 /docs/'],
    ['/a%20b', '302 /a%20b/'],
    ['/%5Cevil.example', '302 /%5Cevil.example/'],
    ['//docs', undefined],
    // What an app of one page relies on, as below /content/.
    ['/route', '200 home'],
    ['/docs/missing', '200 docs'],
    ['/route/below', undefined],
    ['/bare/missing', undefined],
    ['/about.html/x', undefined],
    ['/about.html/', undefined],
  ])('%s is %s', async (path, expected) => {
    for (const host of hosts)
      for (const method of ['GET', 'HEAD']) {
        const answer = await on(host, path, { method })
        if (expected === undefined) {
          expect([answer.status, answer.headers['cache-control']]).toEqual([404, 'no-store'])
          continue
        }
        const { status, headers } = answer
        const body = method === 'HEAD' ? (await on(host, path)).body : answer.body
        expect(told({ status, headers, body })).toBe(expected)
        const cache = host.startsWith('paths') ? 'no-cache' : 'public, max-age=31536000, immutable'
        expect(answer.headers['cache-control']).toBe(cache)
      }
  })

  test('leaves /content/ as it is', async () => {
    const { site } = await named('content-of-paths', ...folder(SITE))
    const below = async (path: string): Promise<string> =>
      told(await server.ask(`/content/${site.outpoint(0)}${path}`))
    expect(await below('')).toBe(`302 /content/${site.outpoint(0)}/index.html`)
    expect(await below('/about')).toBe('200 home')
    expect(await below('/docs')).toContain('200 {')
    const { headers } = await server.ask(`/content/${site.outpoint(0)}/about.html`)
    expect(headers['content-type']).toBe('text/html')
  })

  test('shows directories as inscribed with ?raw', async () => {
    for (const host of hosts)
      for (const path of ['/?raw', '/docs?raw', '/docs/?raw'])
        expect((await on(host, path)).headers['content-type']).toBe('gw-fs/json')
  })

  test('that leads to what this store lacks is never cached as missing', async () => {
    const absent = `${'ab'.repeat(32)}_0`
    const map = directory({ 'x.html': absent, '404.html': '_1' })
    const [, host] = await hostsOf('absent', [map, text('none', 'text/html')])
    for (const path of ['/x.html', '/x']) {
      const answer = await on(host, path)
      expectError(answer, { status: 404, code: 'NOT_FOUND' })
      expect(answer.headers['cache-control']).toBe('no-store')
    }
    expect(told(await on(host, '/y'))).toBe('404 none')
  })
})

describe('the nearest 404.html', () => {
  const lost = { '404.html': 'not here', 'docs/404.html': 'not in docs', 'bare/404.html/x': 'a folder' }
  let hosts: string[] = []
  beforeAll(async () => {
    hosts = await hostsOf('lost', folder({ ...SITE, ...lost }))
  })

  test.each([
    ['/route', 'not here'],
    ['/route/below', 'not here'],
    ['/about.html/x', 'not here'],
    ['/docs/missing', 'not in docs'],
    ['/docs/deep/missing/x', 'not in docs'],
    // A folder of that name is none.
    ['/bare/missing', 'not here'],
  ])('is shown at %s with status 404: %s', async (path, page) => {
    for (const host of hosts) {
      const { status, headers, body } = await on(host, path)
      expect({ status, body: body.toString() }).toEqual({ status: 404, body: page })
      expect(headers['content-type']).toBe('text/html; charset=utf-8')
      // What is not there has no parts, and none that a client could have already (RFC 9110 13.2.1, 14.2).
      for (const [asked, value] of [
        ['If-None-Match', '*'],
        ['Range', 'bytes=0-1'],
        ['If-Match', '"x"'],
      ] as const)
        expect((await on(host, path, { headers: { [asked]: value } })).body.toString()).toBe(page)
      const head = await on(host, path, { method: 'HEAD' })
      expect([head.status, head.headers['content-length']]).toEqual([404, String(page.length)])
    }
  })
})

/**
 * The cases of the group `redirects_file` of the conformance suite of IPFS gateways, with the site of the appendix of the Web
 * _redirects File Specification.
 */
describe('_redirects, as the conformance suite of IPFS gateways has it', () => {
  const EXAMPLES = {
    _redirects: `/redirect-one /one.html
/301-redirect-one /one.html 301
/302-redirect-two /two.html 302
/200-index /index.html 200
/posts/:year/:month/:day/:title /articles/:year/:month/:day/:title 301
/splat/* /redirected-splat/:splat 301
/not-found/* /404.html 404
/gone/* /410.html 410
/unavail/* /451.html 451
/* /index.html 200`,
    ...{ 'index.html': 'my index', '404.html': 'my 404', '410.html': 'my 410', '451.html': 'my 451' },
    ...{ 'one.html': 'my one', 'two.html': 'my two' },
  }
  let [name, outpoint] = ['', '']
  beforeAll(async () => {
    ;[name, outpoint] = await hostsOf('examples', folder(EXAMPLES))
  })

  test.each([
    ['/redirect-one', '301 /one.html'],
    ['/301-redirect-one', '301 /one.html'],
    ['/302-redirect-two', '302 /two.html'],
    ['/200-index', '200 my index'],
    ['/posts/2022/01/01/hello-world', '301 /articles/2022/01/01/hello-world'],
    ['/splat/one.html', '301 /redirected-splat/one.html'],
    ['/not-found/has-no-redirects-entry', '404 my 404'],
    ['/gone/has-no-redirects-entry', '410 my 410'],
    ['/unavail/has-no-redirects-entry', '451 my 451'],
    ['/catch-all', '200 my index'],
    // What is there is shown as it is, whatever the last rule says.
    ['/one.html', '200 my one'],
  ])('%s is %s', async (path, expected) => {
    for (const host of [name, outpoint]) {
      // Twice: the second time, it may come from memory.
      for (const _ of [1, 2]) {
        const answer = await on(host, path)
        expect(told(answer)).toBe(expected)
        // By an outpoint for ever, by a name never without asking.
        const caching = host === outpoint ? 'public, max-age=31536000, immutable' : 'no-cache'
        expect(answer.headers['cache-control']).toBe(caching)
      }
    }
  })

  test('a rewritten path is revalidated by the tag of what it shows', async () => {
    for (const host of [name, outpoint]) {
      const { status, headers, body } = await on(host, '/missing-page')
      expect({ status, body: body.toString() }).toEqual({ status: 200, body: 'my index' })
      const known = { 'If-None-Match': String(headers.etag) }
      expect((await on(host, '/missing-page', { headers: known })).status).toBe(304)
      const part = await on(host, '/missing-page', { headers: { Range: 'bytes=3-7' } })
      expect(told(part)).toBe('206 index')
    }
  })

  test.each([
    ['a forced redirect', '/a /b 301!', 'forced redirects'],
    ['too many bytes', `/a /b\n#${'x'.repeat(64 * 1024)}`, 'redirects file size cannot exceed'],
  ])('a file with %s is an error of the site, for what it lacks alone', async (_, file, reason) => {
    for (const host of await hostsOf(`bad${reason.length}`, folder({ ...EXAMPLES, _redirects: file }))) {
      const answer = await on(host, '/not-found')
      expectError(answer, { status: 500, code: 'BAD_REDIRECTS', error: expect.stringContaining(reason) })
      expect(answer.body.toString()).toContain('could not parse _redirects: ')
      expect(answer.headers['cache-control']).toBe('no-store')
      expect(told(await on(host, '/one.html'))).toBe('200 my one')
      expect(told(await on(host, '/one'))).toBe('200 my one')
    }
  })

  test('the query of a request goes with it, and wins over that of the rule', async () => {
    const rules = [
      '/source1/* /target-file?static-query1=static-val1&static-query2=static-val2 301',
      '/source2/:code/:name /target-file?code=:code&name=:name 301',
      '/source3/* https://example.net/target3/:splat 301',
    ].join('\n')
    const [host] = await hostsOf('queries', folder({ _redirects: rules }))
    const led = async (path: string): Promise<unknown> => (await on(host, path)).headers.location
    expect(await led('/source1/x?a=b&static-query2=mine')).toBe(
      '/target-file?static-query1=static-val1&a=b&static-query2=mine',
    )
    expect(await led('/source2/c/n?x=y')).toBe('/target-file?code=c&name=n&x=y')
    expect(await led('/source3/q/w?x=y')).toBe('https://example.net/target3/q/w?x=y')
  })
})

describe('_redirects', () => {
  test('is looked up in the root directory alone, before a 404.html and an index', async () => {
    const files = { '404.html': 'not here', _redirects: '/a /b', 'docs/_redirects': '/docs/a /c\n/a /c' }
    for (const host of await hostsOf('where', folder({ ...SITE, ...files }))) {
      expect(told(await on(host, '/a'))).toBe('301 /b')
      expect(told(await on(host, '/docs/a'))).toBe('404 not here')
      expect(told(await on(host, '/_redirects'))).toBe('200 /a /b')
    }
  })

  test('shows a folder of a rewritten path in place, and follows one rule alone', async () => {
    const rules =
      '/manual /docs 200\n/handbook /docs/ 200\n/loop /loop2 200\n/loop2 /loop 200\n/self /self 200\n/m /about 200'
    for (const host of await hostsOf('rewrites', folder({ ...SITE, _redirects: rules }))) {
      expect(told(await on(host, '/manual'))).toBe('200 docs')
      expect(told(await on(host, '/handbook'))).toBe('200 docs')
      expect(told(await on(host, '/m'))).toBe('200 about')
      // Nothing is at the end of the rule: as if there were none.
      for (const path of ['/loop', '/self']) expect(told(await on(host, path))).toBe('200 home')
    }
  })

  test('is that of what the name shows now, from memory too', async () => {
    const { site: first } = await named('moves', ...folder({ _redirects: '/a /b' }))
    const question: Question = { headers: { 'Cache-Control': 'no-cache' } }
    for (const _ of [1, 2]) expect(told(await on('moves.localhost', '/a', question))).toBe('301 /b')
    const second = await show({ transaction: first, vout: 0 }, ...folder({ _redirects: '/a /c 302' }))
    for (const _ of [1, 2]) expect(told(await on('moves.localhost', '/a', question))).toBe('302 /c')
    await show({ transaction: second, vout: 0 }, ...folder({ 'a.html': 'a page', _redirects: '/a /d' }))
    expect(told(await on('moves.localhost', '/a', question))).toBe('200 a page')
  })

  test('of 64 KiB answers every path it does not name, and is read once', async () => {
    const rules = '/b/* /c\n'.repeat(8192)
    const [host] = await hostsOf('longest', folder({ _redirects: rules, 'index.html': 'home' }))
    const reads = await readsDuring(async () => {
      for (let at = 0; at < 50; at++) expect(told(await on(host, `/route${at}`))).toBe('200 home')
    })
    // The directory and the rules.
    expect(reads).toBe(2)
  })

  test('is kept as what it takes in memory: 64 KiB may have thirty thousand placeholders', async () => {
    const rule = (at: number): string => `/${at}/:a /${':a'.repeat(32_000)}`
    const sites = await Promise.all(
      Array.from({ length: 12 }, (_, at) => hostsOf(`many${at}`, folder({ _redirects: rule(at), x: 'y' }))),
    )
    const askAll = async (): Promise<void> => {
      for (const [host] of sites) expect((await on(host, '/none')).status).toBe(404)
    }
    // One directory for all, and the rules; then all rules again: 32 MiB hold ten of them.
    expect(await readsDuring(askAll)).toBe(13)
    expect(await readsDuring(askAll)).toBeGreaterThanOrEqual(12)
  })

  test('makes no answers that take more memory than they are counted as', async () => {
    const target = `/${'t'.repeat(8000)}`
    const [host] = await hostsOf('heavy', folder({ _redirects: `/x/:a ${target}/:a` }))
    const ask = async (at: number): Promise<string> => (await on(host, `/x/${at}`)).headers.location ?? ''
    let weight = 0
    const held = GraphReads.prototype.consistent
    await whileReplaced(GraphReads.prototype, 'consistent', {
      by(this: GraphReads, read: () => unknown, cache: Parameters<typeof held>[1]) {
        const answer = held.call(this, read, cache)
        weight = Math.max(weight, cache?.weightOf(answer) ?? 0)
        return answer
      },
      during: async () => expect(await ask(1)).toBe(`${target}/1`),
    })
    expect(weight).toBeGreaterThanOrEqual(8000)
  })
})

describe('text of a site', () => {
  const plain = (body: Uint8Array, contentType = 'text/plain'): File => ({ contentType, body })
  test.each<[what: string, file: File, type: string]>([
    ['that is UTF-8', text('grüße'), 'text/plain; charset=utf-8'],
    ['that is ASCII', text('x', 'text/css'), 'text/css; charset=utf-8'],
    ['with nothing behind its semicolon', text('x', 'text/html;'), 'text/html; charset=utf-8'],
    ['that is empty', text(''), 'text/plain; charset=utf-8'],
    ['of more', text(`ü${'x'.repeat(256 * 1024)}`), 'text/plain'],
    ['that is no UTF-8', plain(Uint8Array.of(0x67, 0xfc)), 'text/plain'],
    ['that is UTF-8 but for its end', plain(Uint8Array.of(0x67, 0xc3)), 'text/plain'],
    ['that says what it is', text('x', 'text/plain; Charset=latin1'), 'text/plain; Charset=latin1'],
    ['that is XML', text('<x/>', 'text/xml'), 'text/xml'],
  ])('%s is served as %s', async (what, file, type) => {
    const { site } = await named(`t${what.replaceAll(' ', '-').toLowerCase()}`, file)
    expect((await on(labelOf(site.outpoint(0)))).headers['content-type']).toBe(type)
    expect((await server.ask(`/content/${site.outpoint(0)}`)).headers['content-type']).toBe(file.contentType)
  })
})

describe('what was published compressed', () => {
  const SVG = `<svg xmlns="http://www.w3.org/2000/svg">${'<g/>'.repeat(2000)}</svg>`
  const svgz = gzipSync(SVG)
  const files: File[] = [
    directory({ 'pic.svgz': '_1', 'data.gz': '_2', 'bomb.html': '_3', 'broken.html': '_4' }),
    { contentType: 'image/svg+xml', body: svgz },
    { contentType: 'application/gzip', body: svgz },
    { contentType: 'text/html', body: gzipSync(Buffer.alloc(8 * 1024 * 1024)) },
    { contentType: 'text/html', body: Uint8Array.of(0x1f, 0x8b, 8, 1, 2, 3) },
  ]
  let asked: ((path: string, headers?: Record<string, string>) => Promise<Answer>)[] = []
  beforeAll(async () => {
    const { site } = await named('packed', ...files)
    asked = [
      (path, headers = {}) => on('packed.localhost', path, { headers }),
      (path, headers = {}) => on(labelOf(site.outpoint(0)), path, { headers }),
      (path, headers = {}) => server.ask(`/content/${site.outpoint(0)}${path}`, { headers }),
    ]
  })

  test.each([undefined, 'gzip', 'br, gzip;q=0.1', '*'])(
    'is sent as it is to a client that takes %j',
    async (codings) => {
      for (const ask of asked)
        for (const _ of [1, 2]) {
          const answer = await ask('/pic.svgz', codings === undefined ? {} : { 'Accept-Encoding': codings })
          expect(answer.headers).toMatchObject({
            'content-encoding': 'gzip',
            'content-type': 'image/svg+xml',
            'content-length': String(svgz.length),
          })
          expect(answer.headers.vary).toContain('Accept-Encoding')
          expect(answer.body.equals(svgz)).toBe(true)
        }
    },
  )

  test.each(['identity', 'br', 'gzip;q=0', ''])('is uncompressed for one that takes %j', async (codings) => {
    for (const ask of asked) {
      const headers = { 'Accept-Encoding': codings }
      const answer = await ask('/pic.svgz', headers)
      expect(answer.headers['content-encoding']).toBeUndefined()
      expect(answer.headers.vary).toContain('Accept-Encoding')
      expect(answer.body.toString()).toBe(SVG)
      // Other bytes have another tag; each is revalidated and cut by its own.
      const packed = await ask('/pic.svgz')
      expect(packed.headers.etag).not.toBe(answer.headers.etag)
      const known = { 'If-None-Match': String(answer.headers.etag) }
      expect((await ask('/pic.svgz', { ...headers, ...known })).status).toBe(304)
      expect((await ask('/pic.svgz', known)).status).toBe(200)
      const part = await ask('/pic.svgz', { ...headers, Range: 'bytes=0-3' })
      expect({ status: part.status, body: part.body.toString() }).toEqual({ status: 206, body: '<svg' })
    }
  })

  test('is told by what it is: an archive stays one, and an error is none', async () => {
    for (const ask of asked) {
      expect((await ask('/data.gz')).headers['content-encoding']).toBeUndefined()
      const { status, headers } = await ask('/pic.svgz', { Range: 'bytes=99999999-' })
      expect([status, headers['content-encoding']]).toEqual([416, undefined])
      expect((await ask('/pic.svgz', { 'If-Match': '"x"' })).headers['content-encoding']).toBeUndefined()
    }
  })

  test.each(['/bomb.html', '/broken.html'])(
    'is sent as it is where it is out of bounds: %s',
    async (path) => {
      for (const ask of asked) {
        const { status, headers, body } = await ask(path, { 'Accept-Encoding': 'identity' })
        expect([status, headers['content-encoding'], body.length < 100_000]).toEqual([200, 'gzip', true])
      }
    },
  )

  test('may be B with its encoding', async () => {
    const asB = ['19HxigV4QyBv3tHpQVcUEQyq1pzZVdoAut', gzipSync('<p>in B'), 'text/html', 'gzip']
    const lockingScript = concatBytes(p2pkh(1), bitcomTail(asB))
    const inB = chain.spend({ outputs: [lockingScript] })
    await server.take(beefOf(inB), ['tm_ordinals'])
    const host = labelOf(inB.outpoint(0))
    const { headers, body } = await on(host, '/', { headers: { 'Accept-Encoding': 'identity' } })
    expect([headers['content-type'], body.toString()]).toEqual(['text/html', '<p>in B'])
    expect((await on(host)).headers['content-encoding']).toBe('gzip')
  })
})

test('a path of a site leads through eight directories, and a rule through eight more', async () => {
  const deep = (count: number): string => `${'d/'.repeat(count)}index.html`
  const files = folder({
    [deep(7)]: 'deepest',
    _redirects: `/a /${'d/'.repeat(7)} 200\n/b /${'d/'.repeat(8)}x 200`,
  })
  const [host] = await hostsOf('deep', files)
  expect(told(await on(host, `/${'d/'.repeat(7)}`))).toBe('200 deepest')
  expect(told(await on(host, '/a'))).toBe('200 deepest')
  const rule = text(`/a /${'d/'.repeat(9)}x 200`)
  const [circle] = await hostsOf('circle', [directory({ d: '_0', _redirects: '_1' }), rule])
  for (const path of [`/${'d/'.repeat(9)}x`, '/a'])
    expectError(await on(circle, path), { status: 400, code: 'NESTING_TOO_DEEP' })
})
