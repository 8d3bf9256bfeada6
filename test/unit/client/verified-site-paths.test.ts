import { gzipSync } from 'node:zlib'
import { outpointLabel } from '../../../backend/src/protocol/host-label.js'
import { parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { createVerifiedFetch } from '../../../src/client/verified-fetch.js'
import { serveVerifiedSite } from '../../../src/client/verified-site.js'
import { hostedServer } from '../../support/gateway/hosted.js'
import { binaryDirectory, directory, type File, folder, inBytes, text } from '../../support/gateway/site.js'
import { useServers } from '../../support/server/test-server.js'

// A client that walks a site by itself comes to what its host answers.

const hosted = await hostedServer(useServers())
const { server, chain, named, on } = hosted

const RULES = [
  '/moved/* /docs/:splat 302',
  '/far/:page https://other.example/:page?a=1',
  '/app/* /index.html 200',
  '/closed /gone.html 410',
  '/nothing /none.html 200',
  '/proxied https://other.example/ 200',
].join('\n')
const gz = gzipSync('<svg xmlns="http://www.w3.org/2000/svg"/>')
const files: Record<string, string | File> = {
  'index.html': '<p>grüße',
  'about.html': 'about',
  'plain.txt': text('0123456789'),
  'latin.txt': { contentType: 'text/plain', body: Uint8Array.of(0xfc) },
  'long.txt': text('x'.repeat(300_000)),
  'pic.svgz': { contentType: 'image/svg+xml', body: gz },
  'broken.svgz': { contentType: 'image/svg+xml', body: Uint8Array.of(0x1f, 0x8b, 8, 0) },
  'docs/index.html': 'docs',
  'docs/404.html': 'not in docs',
  'bare/x.txt': 'bare',
  'gone.html': 'gone',
}
const site = (await named('al', ...folder({ ...files, _redirects: RULES }))).site
const LINKS: Record<string, string> = {
  'a-link': 'about.html',
  'to-docs': 'docs',
  'docs/up': '../about.html',
  out: '../about.html',
  'linked.html': 'docs/index.html',
}
const linkNames = Object.keys(LINKS).map((path) => path.replace('docs/', ''))
const linkFiles = Object.fromEntries(Object.entries(LINKS).map(([path, to]) => [path, text(to)]))
const inBytesToo = folder({ ...files, ...linkFiles, _redirects: RULES }).map((each) =>
  inBytes(each, linkNames),
)
const bytes = (await named('bytes', ...inBytesToo)).site
const bad = (await named('bad', ...folder({ ...files, _redirects: '/a' }))).site
const apps = (await named('apps', ...folder({ 'index.html': 'app', 'a.js': '1' }))).site
const file = (await named('file', text('all of it'))).site
const lacking = (await named('lacking', directory({ 'x.html': `${'ab'.repeat(32)}_0` }))).site

const verified = createVerifiedFetch({
  gateways: [server.url],
  profile: 'local',
  deployment: chain.deployment,
  chainTracker: { isValidRootForHeight: async () => true },
})

const PATHS = `
  / /index.html /about /about/ /about.html /about.html/x /docs /docs/ /docs?a=b /docs/missing /docs/missing/x
  /bare /bare/ /missing /missing/x /plain.txt /latin.txt /long.txt /pic.svgz /moved/a%20b /moved/ /far/x?b=2&a=3
  /app/1/2 /closed /gone /nothing /?raw /docs?raw /docs/?raw /. //x /%2e%2e /%2fx /%5Cx /_redirects /app/../x
  /a-link /to-docs /to-docs/ /to-docs/up /docs/up /to-docs/missing /out /linked`
  .trim()
  .split(/\s+/)

describe.each([
  ['a name', 'al', 'al.localhost'],
  ['an outpoint', site.outpoint(0), labelOf(site.outpoint(0))],
  ['a site in bytes, with links', bytes.outpoint(0), labelOf(bytes.outpoint(0))],
  ['a site without rules', apps.outpoint(0), labelOf(apps.outpoint(0))],
  ['a site that is one file', file.outpoint(0), labelOf(file.outpoint(0))],
])('%s has', (_, resource, host) => {
  test.each(PATHS)('at %s what its host answers', async (path) => {
    const own = await verified(resource + path, { site: true })
    const body = Buffer.from(await own.arrayBuffer())
    const other = await on(host, path, { headers: { 'Accept-Encoding': 'identity' } })
    expect({ status: own.status, location: own.headers.get('location') }).toEqual({
      status: other.status,
      location: other.headers.location ?? null,
    })
    expect(own.headers.get('X-Verified')).toBe('headers')
    if (other.headers['cache-control'] === 'no-store' || other.status === 302) return
    expect(body.equals(other.body)).toBe(true)
    for (const name of ['content-type', 'etag', 'cache-control'] as const)
      expect({ [name]: own.headers.get(name) }).toEqual({ [name]: other.headers[name] ?? null })
  })
})

function labelOf(outpoint: string): string {
  return `${outpointLabel(parseOutpoint(outpoint))}.c.localhost`
}

test('every directory and the rules that an answer follows from are verified', async () => {
  const { verification } = await verified('al/closed', { site: true })
  expect(verification.path).toHaveLength(3)
  expect((await verified('al/docs/', { site: true })).verification.path).toHaveLength(3)
})

test('links are verified, and end where a gateway ends', async () => {
  const { verification } = await verified(`${bytes.outpoint(0)}/to-docs/up`, { site: true })
  expect(verification.path).toHaveLength(5)
  const loop = (await named('loop', binaryDirectory({ a: '_1' }, ['a']), text('a'))).site
  await expect(verified(`${loop.outpoint(0)}/a`)).rejects.toMatchObject({ code: 'NESTING_TOO_DEEP' })
  const wrong = (await named('wrong', { contentType: 'ordfs/dir', body: Uint8Array.of(1, 0, 1, 0, 0) })).site
  await expect(verified(`${wrong.outpoint(0)}/a`)).rejects.toMatchObject({
    code: 'BAD_DIRECTORY',
    message: expect.stringContaining('at byte 4'),
  })
})

test('the page of a rule that is missing has no parts, and no client has it already', async () => {
  const headers = { Range: 'bytes=0-1', 'If-None-Match': '*' }
  const response = await verified('al/closed', { site: true, headers })
  expect({ status: response.status, body: await response.text() }).toEqual({ status: 410, body: 'gone' })
})

test('rules that cannot be read, and a target that needs another server, are errors for what is missing alone', async () => {
  expect(await (await verified(`${bad.outpoint(0)}/about`, { site: true })).text()).toBe('about')
  const code = 'BAD_DIRECTORY'
  const message = expect.stringContaining('could not parse _redirects: line 1')
  await expect(verified(`${bad.outpoint(0)}/x`, { site: true })).rejects.toMatchObject({ code, message })
  await expect(verified('al/proxied', { site: true })).rejects.toMatchObject({ code })
})

test('what gateways lack is not missing', async () => {
  const getting = verified(`${lacking.outpoint(0)}/x`, { site: true })
  await expect(getting).rejects.toMatchObject({ code: 'NOT_FOUND' })
})

test('what begins as if it were compressed is sent as it is', async () => {
  const response = await verified('al/broken.svgz')
  expect(Buffer.from(await response.arrayBuffer())).toEqual(Buffer.from([0x1f, 0x8b, 8, 0]))
})

test('a bomb is not uncompressed beyond the limit', async () => {
  const body = gzipSync(Buffer.alloc(4_000_000))
  const { site: bomb } = await named('bomb', { contentType: 'text/html', body })
  const bounded = createVerifiedFetch({
    ...{ gateways: [server.url], profile: 'local', deployment: chain.deployment, maxBytes: 1_000_000 },
    chainTracker: 'scripts only',
  })
  expect((await (await bounded(bomb.outpoint(0))).arrayBuffer()).byteLength).toBeLessThan(10_000)
})

test('without being asked for a site, paths are those below /content/', async () => {
  expect(await (await verified('al/about')).text()).toBe('<p>grüße')
  expect((await verified('al/docs')).headers.get('content-type')).toBe('gw-fs/json')
  expect((await verified('al/plain.txt')).headers.get('content-type')).toBe('text/plain')
})

describe('the worker of a verified site', () => {
  const answer = serveVerifiedSite(
    {
      location: { origin: 'https://site.example' },
      clients: { claim: async () => {} },
      skipWaiting: async () => {},
      addEventListener: () => {},
    },
    { site: 'al', fetch: verified },
  )
  const shown = async (path: string): Promise<[number, string | null, string]> => {
    const response = await answer(new Request(`https://site.example${path}`))
    return [response.status, response.headers.get('location'), await response.text()]
  }
  test.each([
    ['/about', [200, null, 'about']],
    ['/docs', [302, 'https://site.example/docs/', '']],
    ['/moved/x', [302, 'https://site.example/docs/x', '']],
    ['/far/x', [301, 'https://other.example/x?a=1', '']],
    ['/docs/missing', [404, null, 'not in docs']],
    ['/closed', [410, null, 'gone']],
  ] as const)('shows %s as its host does', async (path, expected) => {
    expect(await shown(path)).toEqual(expected)
  })
})
