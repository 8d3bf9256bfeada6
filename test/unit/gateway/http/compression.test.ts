import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { builtPages } from '../../../support/cli/built-package.js'
import { hostedServer } from '../../../support/gateway/hosted.js'
import { publisher, text } from '../../../support/gateway/site.js'
import { type Answer, useServers } from '../../../support/server/test-server.js'

const { server, chain } = await hostedServer(useServers(), {}, { pages: await builtPages() })
const published = publisher({ server, chain })
const TEXT = 'a long text that compresses well. '.repeat(200)

const note = await published(text(TEXT))
const inscribed = `/content/${note.outpoint(0)}`

const ask = (path: string, coding: string, headers: Record<string, string> = {}): Promise<Answer> =>
  server.ask(path, { headers: { 'Accept-Encoding': coding, ...headers } })

const decoded = ({ headers, body }: Answer): string => {
  const coding = headers['content-encoding']
  if (coding === 'br') return brotliDecompressSync(body).toString()
  return (coding === 'gzip' ? gunzipSync(body) : body).toString()
}

const COMPRESSED = ['/', '/names', '/mine', '/api', '/openapi.json', '/explorer/style.css', '/mine/mining.js']

describe.each(COMPRESSED)('%s', (path) => {
  test('is sent in the best coding that a client takes, each with a strong tag of its own', async () => {
    const plain = await server.ask(path)
    expect(plain.headers).toMatchObject({
      vary: 'Accept-Encoding',
      'content-length': String(plain.body.length),
    })
    expect(plain.headers['content-encoding']).toBeUndefined()
    const tags = new Set([plain.headers.etag])
    for (const [accepted, coding] of [
      ['gzip, deflate, br', 'br'],
      ['gzip', 'gzip'],
      ['br;q=0, gzip;q=0.5', 'gzip'],
    ] as const) {
      const answer = await ask(path, accepted)
      expect(answer.headers).toMatchObject({
        'content-encoding': coding,
        vary: 'Accept-Encoding',
        'content-type': plain.headers['content-type'],
        'content-length': String(answer.body.length),
      })
      expect(answer.body.length).toBeLessThan(plain.body.length * 0.75)
      expect(decoded(answer) === plain.body.toString()).toBe(true)
      tags.add(answer.headers.etag)
      const again = await ask(path, accepted, { 'If-None-Match': String(answer.headers.etag) })
      expect(again).toMatchObject({
        status: 304,
        headers: { etag: answer.headers.etag, vary: 'Accept-Encoding' },
      })
      expect(again.body).toHaveLength(0)
    }
    expect(tags.size).toBe(3)
    for (const tag of tags) expect(tag).toMatch(/^"[\w-]+"$/)
  })

  test('is sent as it is to a client that takes nothing else', async () => {
    const plain = await server.ask(path)
    for (const accepted of ['identity', 'deflate, zstd', 'br;q=0, gzip;q=0', '*;q=0', 'nonsense, ,;q='])
      expect((await ask(path, accepted)).body.equals(plain.body)).toBe(true)
  })

  test('has the head of the same response for HEAD', async () => {
    const { headers } = await ask(path, 'br')
    const head = await server.ask(path, { method: 'HEAD', headers: { 'Accept-Encoding': 'br' } })
    for (const name of ['content-encoding', 'content-length', 'etag', 'vary'])
      expect(head.headers[name]).toBe(headers[name])
    expect(head.body).toHaveLength(0)
  })
})

test('content is sent as it was inscribed, in ranges too', async () => {
  const answer = await ask(inscribed, 'br, gzip')
  expect(answer.headers).toMatchObject({ 'content-length': String(TEXT.length), 'accept-ranges': 'bytes' })
  expect([answer.headers['content-encoding'], answer.body.toString()]).toEqual([undefined, TEXT])
  expect(await ask(inscribed, 'br, gzip', { Range: 'bytes=2-5' })).toMatchObject({
    status: 206,
    body: Buffer.from('long'),
  })
})

test('what is not cached is not compressed: errors, searches, answers to the operator', async () => {
  for (const path of ['/search?q=nothing', '/admin/blocks', '/names?order=name'])
    for (const _ of ['first', 'again']) {
      const answer = await ask(path, 'br, gzip', {
        Accept: 'text/html',
        Authorization: `Bearer ${'a'.repeat(16)}`,
      })
      expect(answer.headers['content-encoding']).toBeUndefined()
    }
})

test('a page that has changed is compressed again', async () => {
  const before = await ask('/', 'br')
  await published(text('something new'))
  const after = await ask('/', 'br', { 'If-None-Match': String(before.headers.etag) })
  expect(after.status).toBe(200)
  expect(decoded(after)).toContain('something new')
})
