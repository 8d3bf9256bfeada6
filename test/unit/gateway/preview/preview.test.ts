import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { errorResponse } from '../../../../src/gateway/http/error-response.js'
import { RequestBodies } from '../../../../src/gateway/http/request-body.js'
import { previewRoutes } from '../../../../src/gateway/preview/preview.js'
import { expectError } from '../../../support/gateway/expect-error.js'
import { sendRaw } from '../../../support/server/connections.js'
import {
  type Answer,
  ask,
  lastingHeaders,
  type Question,
  SILENT,
  useServers,
} from '../../../support/server/test-server.js'

const servers = useServers()
const server = await servers.start()
const PREVIEW = '/svc/gateway/preview'
const SANDBOX = 'sandbox allow-scripts allow-forms allow-modals allow-popups allow-downloads'
const MiB = 1024 * 1024
const PAGE = '<!doctype html><script>1</script>'

const posted = (contentType: string | undefined, body: Uint8Array | string = 'body'): Question => ({
  method: 'POST',
  headers: contentType === undefined ? {} : { 'Content-Type': contentType },
  body,
})

interface Previewed {
  type: string
  body: Uint8Array | string
  runs: boolean
}

function expectPreview({ status, headers, body }: Answer, expected: Previewed): void {
  expect({ status, type: headers['content-type'] }).toEqual({ status: 200, type: expected.type })
  expect(body.equals(Buffer.from(expected.body))).toBe(true)
  expect(headers['content-length']).toBe(String(Buffer.from(expected.body).length))
  expect(headers['content-security-policy']).toBe(expected.runs ? SANDBOX : undefined)
  expect(headers['x-content-type-options']).toBe('nosniff')
  expect(headers['cross-origin-resource-policy']).toBe('cross-origin')
  expect([headers['cache-control'], headers.etag]).toEqual(['no-store', undefined])
}

const BAD_BODY = { status: 400, code: 'BAD_BODY' }
const HTML = 'text/html; charset=utf-8'

describe('HTML in a path', () => {
  /** Its base64 has both letters in which the alphabets differ, and padding. */
  const ODD = '<p>??>>ÿÿ</p>~~'
  const base64 = Buffer.from(ODD).toString('base64')

  test.each([
    ['base64', base64],
    ['base64 without padding', base64.replace(/=+$/, '')],
    ['base64url', Buffer.from(ODD).toString('base64url')],
    ['base64url with padding', base64.replaceAll('+', '-').replaceAll('/', '_')],
    ['base64, escaped', encodeURIComponent(base64)],
    ['base64, its padding escaped', base64.replaceAll('=', '%3d')],
    ['base64 and a query', `${base64}?${base64}`],
  ])('comes back from %s', async (_, text) => {
    expectPreview(await server.ask(`${PREVIEW}/${text}`), { type: HTML, body: ODD, runs: true })
  })

  test('comes back whatever its length, and slashes in a row are no path', async () => {
    for (const body of ['a', 'ab', 'abc', PAGE, 'ÿ'.repeat(3000)]) {
      const path = `${PREVIEW}/${Buffer.from(body).toString('base64url')}`
      expectPreview(await server.ask(path), { type: HTML, body, runs: true })
    }
    const bytes = new Uint8Array(9).fill(255)
    expectPreview(await server.ask(`${PREVIEW}/${'/'.repeat(12)}`), { type: HTML, body: bytes, runs: true })
  })

  test('answers HEAD with the same headers and no body', async () => {
    const path = `${PREVIEW}/${Buffer.from(PAGE).toString('base64url')}`
    const [get, head] = [await server.ask(path), await server.ask(path, { method: 'HEAD' })]
    expect(head.body).toHaveLength(0)
    expect(head).toMatchObject({ status: 200, headers: lastingHeaders(get) })
  })

  test.each([
    ['nothing', ''],
    ['padding alone', '/=='],
    ['one letter', '/a'],
    ['padding too short', '/YQ='],
    ['both alphabets at once', '/-_+/'],
    ['a line break', '/YWJj%0d%0a'],
    ['an escape that is none', '/%zz'],
    ['an escape that is escaped', '/YQ%253D%253D'],
    ['a file below it', '/YQ==/index.html'],
  ])('cannot be %s', async (_, path) => {
    expectError(await server.ask(`${PREVIEW}${path}`), BAD_BODY)
    expect((await server.ask(`${PREVIEW}${path}`, { method: 'HEAD' })).status).toBe(400)
  })

  test('has 1 MiB at most where Node takes more', async () => {
    const routes = express()
      .use('/p', previewRoutes({ policy: 'sandbox', bodies: new RequestBodies() }).handler)
      .use(errorResponse({ logger: SILENT }))
    const wide = createServer({ maxHeaderSize: 2 * MiB }, routes).listen(0, '127.0.0.1')
    onTestFinished(() => void wide.close())
    await once(wide, 'listening')
    const url = `http://127.0.0.1:${(wide.address() as AddressInfo).port}`
    const path = (length: number): string => `/p/preview/${Buffer.alloc(length, 'a').toString('base64url')}`
    expect((await ask(url, path(MiB))).body).toHaveLength(MiB)
    expect(await ask(url, path(MiB + 1))).toMatchObject({ status: 413, json: { code: 'TOO_LARGE' } })
  })
})

describe('a body', () => {
  test.each<[string | undefined, string, boolean]>([
    ['text/html', 'text/html', true],
    ['image/svg+xml', 'image/svg+xml', true],
    ['text/plain', 'text/plain', false],
    ['text/html, text/html', 'text/html, text/html', true],
    [undefined, 'application/octet-stream', false],
    ['', 'application/octet-stream', false],
    ['image/png,text/html', 'application/octet-stream', false],
  ])('whose type is %j comes back as %s', async (sent, type, runs) => {
    expectPreview(await server.ask(PREVIEW, posted(sent, PAGE)), { type, body: PAGE, runs })
  })

  test('of any bytes comes back as it was, up to 1 MiB', async () => {
    const all = new Uint8Array(256).map((_, byte) => byte)
    for (const body of [all, Uint8Array.of(0), new Uint8Array(MiB)])
      expectPreview(await server.ask(PREVIEW, posted('a/b', body)), { type: 'a/b', body, runs: false })
  })

  test('that is too large or is not there is refused', async () => {
    const tooLarge = await server.ask(PREVIEW, posted('text/html', new Uint8Array(MiB + 1)))
    expectError(tooLarge, { status: 413, code: 'TOO_LARGE' })
    expectError(await server.ask(PREVIEW, { method: 'POST' }), BAD_BODY)
    expectError(await server.ask(PREVIEW, posted('text/html', '')), BAD_BODY)
  })
})

describe('a type that is written past the rules of HTTP', () => {
  const send = async (bytes: string): Promise<string> => await sendRaw(server.url, bytes)
  const head = (type: string): string =>
    `POST ${PREVIEW} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: ${type}\r\nContent-Length: 4\r\n\r\nbody`

  test('a line break ends it: what follows is the request’s, and never the answer’s', async () => {
    const answer = await send(head('text/html\r\nContent-Security-Policy: none\r\nX-Evil: 1'))
    expect(answer).toMatch(/^HTTP\/1\.1 200 /)
    expect(answer).toContain(`Content-Security-Policy: ${SANDBOX}\r\n`)
    expect(answer).not.toMatch(/evil|policy: none/i)
  })

  test('of two, one is taken and judged', async () => {
    const answer = await send(head('image/png\r\nContent-Type: text/html'))
    expect(answer).toContain('\r\nContent-Type: image/png\r\n')
    expect(answer.match(/content-type:/gi)).toHaveLength(1)
    expect(answer).toContain('X-Content-Type-Options: nosniff\r\n')
  })
})

test('nothing is previewed for a service worker', async () => {
  const worker = { 'Service-Worker': 'script' }
  const path = `${PREVIEW}/${Buffer.from('onfetch = null').toString('base64url')}`
  expectError(await server.ask(path, { headers: worker }), BAD_BODY)
  const question = posted('text/javascript', 'onfetch = null')
  const asWorker = { ...question, headers: { ...question.headers, ...worker } }
  expectError(await server.ask(PREVIEW, asWorker), BAD_BODY)
})

test('it stands under every prefix of the profile, and nowhere else', async () => {
  const live = await servers.start({ PROFILE: 'mainnet', CHAIN_TRACKER: 'scripts-only' })
  const expected = { type: HTML, body: 'abc', runs: true }
  for (const prefix of ['/1sat/ordfs', '/svc/gateway']) {
    expectPreview(await live.ask(`${prefix}/preview/YWJj`), expected)
    expectPreview(await live.ask(`${prefix}/preview`, posted(HTML, 'abc')), expected)
  }
  for (const path of ['/1sat/ordfs/preview/YWJj', '/preview/YWJj', `${PREVIEW}s/YWJj`])
    expectError(await server.ask(path), { status: 404, code: 'NOT_FOUND' })
  const otherMethod = { status: 405, code: 'METHOD_NOT_ALLOWED' }
  expectError(await server.ask(`${PREVIEW}/YWJj`, posted('text/html')), otherMethod)
  expectError(await server.ask(PREVIEW, { ...posted('text/html'), method: 'PUT' }), otherMethod)
})
