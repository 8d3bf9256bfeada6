import { expectError } from '../../../support/gateway/expect-error.js'
import { keptLog } from '../../../support/gateway/faults.js'
import { directory, publisher, text } from '../../../support/gateway/site.js'
import { FakeChain } from '../../../support/protocol/fake-chain.js'
import { sendRaw } from '../../../support/server/connections.js'
import { useServers } from '../../../support/server/test-server.js'

// Types, headers, methods and connections that somebody made to see what happens.

const { logger, records } = keptLog()
const server = await useServers().start({}, { logger })
const published = publisher({ server, chain: new FakeChain() })
const file = await published(text('0123456789'))
const FILE = `/content/${file.outpoint(0)}`
const TAG = (await server.ask(FILE)).headers.etag ?? ''

afterEach(() => {
  // Whatever was sent, it was not our fault.
  expect(records.splice(0)).toEqual([])
})

const UNTYPED = 'application/octet-stream'
const LINE_FEED = 'text/html;x=\u010aX-Evil: 1'
const long = (length: number): string => 'text/plain;x='.padEnd(length, 'y')
test.each<[string, string, string]>([
  ['a header behind it', 'text/html\r\nX-Evil: 1\r\n\r\n<script>', UNTYPED],
  // In the bytes that are inscribed; clients read them as Latin-1.
  ['a letter whose low byte is a line feed', LINE_FEED, Buffer.from(LINE_FEED, 'utf8').toString('latin1')],
  ['256 bytes', long(256), UNTYPED],
  ['255 bytes', long(255), long(255)],
])('a content type with %s', async (_, inscribed, served) => {
  const page = await published(text('<script>1</script>', inscribed))
  for (const method of ['GET', 'HEAD']) {
    const { status, headers } = await server.ask(`/content/${page.outpoint(0)}`, { method })
    expect([status, headers['content-type'], headers['x-evil']]).toEqual([200, served, undefined])
    expect(headers['x-content-type-options']).toBe('nosniff')
    if (served.startsWith('text/html')) expect(headers['content-security-policy']).toMatch(/^sandbox /)
  }
})

const GET = `GET ${FILE} HTTP/1.1\r\nHost: x\r\n`
const CLOSE = 'Connection: close\r\n\r\n'
const WHOLE = /^HTTP\/1\.1 200 .*\r\n\r\n0123456789$/s
test.each<[what: string, sent: string, answer: RegExp]>([
  ['CONNECT, which is no way through', 'CONNECT elsewhere.test:80 HTTP/1.1\r\nHost: x\r\n\r\n', /^$/],
  ['5,000 headers, which are read past', `${GET}${'x: y\r\n'.repeat(5000)}${CLOSE}`, WHOLE],
  [
    'a length and chunks',
    `${GET}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n`,
    /^HTTP\/1\.1 400 /,
  ],
  [
    'methods in headers',
    `${GET}X-HTTP-Method-Override: DELETE\r\nX-Method-Override: HEAD\r\n${CLOSE}`,
    WHOLE,
  ],
])('a connection with %s', async (_, sent, answer) => {
  expect(await sendRaw(server.url, sent)).toMatch(answer)
})

test('headers of 20 KiB are too many bytes', async () => {
  const many = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`X-${at}`, 'a'.repeat(100)]))
  for (const headers of [
    many,
    { 'X-Long': 'a'.repeat(20 * 1024) },
    { Range: `bytes=0-0${',0-0'.repeat(9999)}` },
  ])
    expect((await server.ask(FILE, { headers })).status).toBe(431)
})

test('headers that ask for another host, protocol or address change nothing', async () => {
  const site = await published(directory({ 'index.html': '_1' }), text('index'))
  const elsewhere = { Host: 'else.test', 'X-Forwarded-Host': 'else.test', Forwarded: 'host=else.test' }
  const headers = { ...elsewhere, 'X-Forwarded-Proto': 'https', 'X-Original-URL': '/health' }
  const path = `/content/${site.outpoint(0)}`
  expect((await server.ask(path, { headers })).headers.location).toBe(`${path}/index.html`)
})

test.each<[string, string, number, string]>([
  ['5,000 that overlap: what they make up together', '0-,'.repeat(5000), 206, '0123456789'],
  ['4,000 of one byte', '1-1,'.repeat(4000), 206, '1'],
  ['3,000 that lie apart: the complete body', '0-0,5-5,'.repeat(1500), 200, '0123456789'],
  ['a number of 15,000 digits', `0-${'9'.repeat(15_000)},`, 206, '0123456789'],
  ['a suffix of 15,000 digits', `-${'9'.repeat(15_000)},`, 206, '0123456789'],
  ['15,000 spaces: not valid, so the complete body', `0-0${' '.repeat(15_000)}x,`, 200, '0123456789'],
  ['15,000 spaces around a comma', `0-0${' '.repeat(15_000)},0-0,`, 206, '0'],
  ['15,000 commas: not valid, so the complete body', ','.repeat(15_000), 200, '0123456789'],
  ['15,000 minus signs: not valid, so the complete body', '-'.repeat(15_000), 200, '0123456789'],
  ['a start behind the end by 15,000 digits', `${'9'.repeat(15_000)}-,`, 416, ''],
])('ranges: %s', async (_, ranges, status, expected) => {
  const answer = await server.ask(FILE, { headers: { Range: `bytes=${ranges.slice(0, -1)}` } })
  if (status === 416) expectError(answer, { status, code: 'RANGE_NOT_SATISFIABLE' })
  else expect([answer.status, answer.body.toString()]).toEqual([status, expected])
})

const others = `"${'a'.repeat(60)}", `.repeat(190)
test.each<[string, string, number]>([
  ['without the tag', others.slice(0, -2), 200],
  ['with the tag at their end', `${others}${TAG}`, 304],
  ['of commas and the tag', `${','.repeat(12 * 1024)}${TAG}`, 304],
  ['of quotes', '"'.repeat(12 * 1024), 200],
  ['of spaces and a word', `${' '.repeat(6 * 1024)}x${' '.repeat(6 * 1024)}x`, 200],
])('conditions of 12 KiB %s', async (_, value, expected) => {
  const { status, headers, body } = await server.ask(FILE, { headers: { 'If-None-Match': value } })
  expect([status, headers.etag, body.toString()]).toEqual([
    expected,
    TAG,
    expected === 304 ? '' : '0123456789',
  ])
})

test('a connection on which 60 requests come at once has their answers in order', async () => {
  const kinds = [
    [FILE, 'HTTP/1.1 200 OK'],
    ['/content/x', 'HTTP/1.1 400 Bad Request'],
    ['/nowhere', 'HTTP/1.1 404 Not Found'],
  ] as const
  const wanted = Array.from({ length: 60 }, (_, at) => kinds[at % 3] ?? kinds[0])
  const requests = wanted.map(([path]) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
  const answers = await sendRaw(server.url, `${requests.join('')}${GET}${CLOSE}`)
  expect(answers.match(/HTTP\/1\.1 \d{3} [A-Za-z ]+/g)).toEqual([
    ...wanted.map(([, line]) => line),
    kinds[0][1],
  ])
})

test('a connection that sends a body along with a GET has it read past', async () => {
  const body = 'GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n'
  const one = `${GET}Content-Length: ${body.length}\r\n\r\n${body}`
  const answers = await sendRaw(server.url, `${one}HEAD ${FILE} HTTP/1.1\r\nHost: x\r\n${CLOSE}`)
  expect(answers.match(/HTTP\/1\.1 \d{3}/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200'])
})
