import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { hostedServer } from '../../../support/gateway/hosted.js'
import { directory, text } from '../../../support/gateway/site.js'
import { useServers } from '../../../support/server/test-server.js'

const PLAIN = 'what is said '.repeat(20)
const CODED = gzipSync(PLAIN)
const LONG = 'x'.repeat(300_000)
const { server, named, on } = await hostedServer(useServers())
const { site } = await named(
  'al',
  directory({ 'index.html': '_1', 'a.txt': '_2', 'long.txt': '_3', '404.html': '_1' }),
  text('<p>a page', 'text/html'),
  { contentType: 'text/plain', body: CODED },
  text(LONG),
)
const page = `/content/${site.outpoint(1)}`
const coded = `/content/${site.outpoint(2)}`
const long = `/content/${site.outpoint(3)}`

const digestOf = (bytes: string | Uint8Array): string =>
  `sha-256=:${createHash('sha256').update(bytes).digest('base64')}:`
const PAGE = digestOf('<p>a page')
const GZIP = { 'Accept-Encoding': 'gzip' }

test.each<[path: string, question: object, status: number, whole?: string, sent?: string]>([
  [page, {}, 200, PAGE, PAGE],
  [`/content/${site.outpoint(0)}/index.html`, {}, 200, PAGE, PAGE],
  [long, {}, 200, digestOf(LONG), digestOf(LONG)],
  [page, { method: 'HEAD' }, 200, PAGE, PAGE],
  [page, { headers: { Range: 'bytes=1-2' } }, 206, PAGE],
  [long, { headers: { Range: 'bytes=0-1,5-6' } }, 206, digestOf(LONG)],
  [page, { headers: { Range: 'bytes=90-' } }, 416],
  [page, { headers: { 'If-None-Match': '*' } }, 304],
  [page, { headers: { 'If-Match': '"x"' } }, 412],
  // Of the bytes as they are coded; of others, nobody has counted it.
  [coded, { headers: GZIP }, 200, digestOf(CODED), digestOf(CODED)],
  [coded, { headers: { 'Accept-Encoding': 'identity' } }, 200],
])('%s %j is %i, with the digests that are known', async (path, question, status, ...[whole, sent]) => {
  // Twice: the second time, it may come from memory.
  for (const _ of [1, 2]) {
    const { headers, status: answered, body } = await server.ask(path, question)
    const { 'repr-digest': represented, 'content-digest': content } = headers
    expect([answered, represented, content]).toEqual([status, whole, sent])
    if (sent !== undefined && body.length > 0) expect(digestOf(body)).toBe(sent)
  }
})

test('hosts have them too, of the page for what is missing as well', async () => {
  for (const [path, status] of [
    ['/', 200],
    ['/missing', 404],
  ] as const) {
    const { headers, status: answered } = await on('al.localhost', path)
    expect([answered, headers['repr-digest'], headers['content-digest']]).toEqual([status, PAGE, PAGE])
  }
})
