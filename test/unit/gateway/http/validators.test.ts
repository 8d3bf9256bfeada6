import { builtPages } from '../../../support/cli/built-package.js'
import { hostedServer } from '../../../support/gateway/hosted.js'
import { directory, text } from '../../../support/gateway/site.js'
import { useServers } from '../../../support/server/test-server.js'

/**
 * A 304 sends neither the body nor its type again (RFC 9110 15.4.5), so a tag names both: what was inscribed with the wrong type
 * is usually inscribed again, with the same bytes.
 */

const { server, named, show, on } = await hostedServer(useServers(), {}, { pages: await builtPages() })

const SVG = '<svg xmlns="http://www.w3.org/2000/svg"/>'

test.each(['content', 'host'])('the same bytes with another type are sent again: %s', async (way) => {
  const name = way === 'host' ? 'a' : 'b'
  const { mint, site } = await named(name, text(SVG, 'text/plain'))
  const ask = (headers = {}) =>
    way === 'host'
      ? on(`${name}.localhost`, '/', { headers })
      : server.ask(`/content/${mint.outpoint(2)}:-1`, { headers })
  const before = await ask()
  expect(before.headers['content-type']).toMatch(/^text\/plain/)
  const known = { 'If-None-Match': String(before.headers.etag) }
  expect((await ask(known)).status).toBe(304)
  await show({ transaction: site, vout: 0 }, text(SVG, 'image/svg+xml'))
  const { status, headers, body } = await ask(known)
  expect([status, headers['content-type'], body]).toEqual([200, 'image/svg+xml', before.body])
  // Nor is half of one the rest of the other.
  const range = await ask({ Range: 'bytes=1-', 'If-Range': String(before.headers.etag) })
  expect(range.status).toBe(200)
})

test('streams of the same bytes with other types have other tags', async () => {
  const [plain, svg] = [await named('c', text(SVG)), await named('d', text(SVG, 'image/svg+xml'))]
  const tags = [plain, svg].map(async ({ site }) => {
    const { status, headers } = await server.ask(`/svc/gateway/stream/${site.outpoint(0)}`)
    return status === 200 && headers.etag
  })
  expect(new Set([false, undefined, ...(await Promise.all(tags))]).size).toBe(4)
})

test('a type that is not served as it is inscribed has the tag of what it is served as', async () => {
  const { mint, site } = await named('e', text(SVG, 'no type'))
  const tagged = (path: string) => server.ask(path).then(({ headers }) => headers.etag)
  const before = await tagged(`/content/${mint.outpoint(2)}:-1`)
  await show({ transaction: site, vout: 0 }, text(SVG, 'no type either'))
  expect(await tagged(`/content/${mint.outpoint(2)}:-1`)).toBe(before)
})

/** Routes whose answers a stranger can inscribe byte for byte, as another type. */
const ROUTES = ['/openapi.json', '/mine/main.js', '/mine', '/', '/svc/names/proof/f']

test.each(ROUTES)('what %s sends has another tag as content of another type', async (route) => {
  await named('f', directory({}))
  const { status, headers, body } = await server.ask(route)
  expect(status).toBe(200)
  if (headers.etag === undefined) {
    // Nothing that a client can revalidate.
    expect(headers['last-modified']).toBeUndefined()
    return
  }
  const { site } = await named(`f${ROUTES.indexOf(route)}`, { contentType: 'x/other', body })
  const content = await server.ask(`/content/${site.outpoint(0)}`)
  expect(content.body.equals(body)).toBe(true)
  expect(content.headers.etag).not.toBe(headers.etag)
})

test('a type with letters beyond ASCII leaves in the bytes that were inscribed, on every way', async () => {
  const type = 'text/html; name="café 😀.html"; charset=utf-8'
  const { mint, site } = await named('z', text('<p>', type))
  const typeOf = (answer: ReturnType<typeof on>) =>
    answer.then(({ headers }) => Buffer.from(String(headers['content-type']), 'latin1').toString('utf8'))
  const content = `/content/${mint.outpoint(2)}:-1`
  for (const answer of [
    server.ask(content),
    server.ask(content, { method: 'HEAD' }),
    server.ask(content, { headers: { Range: 'bytes=1-1' } }),
    server.ask(`/svc/gateway/stream/${site.outpoint(0)}`),
    on('z.localhost', '/'),
    server.ask('/svc/gateway/preview', {
      method: 'POST',
      headers: { 'Content-Type': Buffer.from(type).toString('latin1') },
      body: Buffer.from('<p>'),
    }),
  ])
    expect(await typeOf(answer)).toBe(type)
})
