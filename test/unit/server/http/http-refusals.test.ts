import { utf8 } from '../../../../backend/src/protocol/bytes.js'
import { keptLog } from '../../../support/gateway/faults.js'
import { beefOf, FakeChain } from '../../../support/protocol/fake-chain.js'
import { openSocket, sendRaw } from '../../../support/server/connections.js'
import { useServers } from '../../../support/server/test-server.js'

// What is refused before any route is asked, on real connections.

const servers = useServers()
const { logger, records } = keptLog()
const server = await servers.start({}, { logger, limits: { maxHeaderBytes: 8000, maxPathBytes: 1000 } })
const hasty = await servers.start({}, { logger, limits: { headersTimeout: 400, requestTimeout: 800 } })
const chain = new FakeChain()
const file = chain.inscribe({ contentType: 'text/plain', body: utf8('0123456789') })
await server.submit(beefOf(file), ['tm_ordinals'])
const FILE = `/content/${file.outpoint(0)}`

afterEach(() => {
  // Whatever was sent, it was not our fault.
  expect(records.splice(0)).toEqual([])
})

interface Refused {
  status: number
  code: string
}

/** Expects the last answer of a connection to be an error in the shape of all others, and to say that it is the last. */
function expectRefusal(answers: string, { status, code }: Refused): void {
  const [head = '', body = ''] = answers.slice(answers.lastIndexOf('HTTP/1.1 ')).split('\r\n\r\n')
  const [line, ...fields] = head.split('\r\n')
  expect(line).toMatch(new RegExp(`^HTTP/1\\.1 ${status} [A-Z]`))
  expect(JSON.parse(body)).toEqual({ error: expect.stringMatching(/^.{5,400}$/), code })
  const headers = Object.fromEntries(
    fields.map((field) => field.split(': ')).map(([k, v]) => [k?.toLowerCase(), v]),
  )
  expect(headers).toMatchObject({
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(body.length),
    'cache-control': 'no-store',
    'access-control-allow-origin': '*',
    connection: 'close',
  })
  expect(headers['access-control-expose-headers']).toContain('Retry-After')
}

const HEAD = 'Host: x\r\n'
const GET = `GET ${FILE} HTTP/1.1\r\n${HEAD}`
const CHUNKED = `POST /lookup HTTP/1.1\r\n${HEAD}Transfer-Encoding: chunked\r\n\r\n`
const UNREADABLE = { status: 400, code: 'BAD_BODY' }

test.each<[string, string, Refused]>([
  ['no HTTP', 'hello\r\n\r\n', UNREADABLE],
  ['a method that is none', `BREW ${FILE} HTTP/1.1\r\n${HEAD}\r\n`, UNREADABLE],
  ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', UNREADABLE],
  ['a header without a name', `GET ${FILE} HTTP/1.1\r\n${HEAD}: x\r\n\r\n`, UNREADABLE],
  ['two lengths', `${GET}Content-Length: 1\r\nContent-Length: 2\r\n\r\n`, UNREADABLE],
  ['no host', `GET ${FILE} HTTP/1.1\r\n\r\n`, UNREADABLE],
  ['a chunk of no length', `${CHUNKED}x\r\n`, UNREADABLE],
  ['a long header', `${GET}X-Long: ${'a'.repeat(9000)}\r\n\r\n`, { status: 431, code: 'TOO_LARGE' }],
  ['long chunk extensions', `${CHUNKED}1;${'a'.repeat(20_000)}\r\n`, { status: 413, code: 'TOO_LARGE' }],
  ['a long path', `GET /${'a'.repeat(1000)} HTTP/1.1\r\n${HEAD}\r\n`, { status: 414, code: 'TOO_LARGE' }],
  ['a long query', `GET /?${'a'.repeat(999)} HTTP/1.1\r\n${HEAD}\r\n`, { status: 414, code: 'TOO_LARGE' }],
  ['an expectation', `${GET}Expect: the-unexpected\r\n\r\n`, { status: 417, code: 'BAD_BODY' }],
])('%s is refused in the one shape of errors', async (_, sent, refused) => {
  const { send, heard, ended } = await openSocket(server.url)
  send(sent)
  await ended
  expectRefusal(heard(), refused)
})

test.each([
  ['headers that do not end', `GET ${FILE} HTTP/1.1\r\n${HEAD}`],
  ['a body that does not end', `POST /lookup HTTP/1.1\r\n${HEAD}Content-Length: 9\r\n\r\n{`],
])('%s are waited for so long, and refused', async (_, sent) => {
  const { send, heard, ended } = await openSocket(hasty.url)
  send(sent)
  await ended
  expectRefusal(heard(), { status: 408, code: 'BAD_BODY' })
})

test('a path of the longest length is asked for, and 100-continue is met', async () => {
  const long = `GET /${'a'.repeat(999)} HTTP/1.1\r\n${HEAD}Connection: close\r\n\r\n`
  expect(await sendRaw(server.url, long)).toMatch(/^HTTP\/1\.1 404 /)
  const body = '{"service":"ls_names","query":{"origin":"a"}}'
  const { send, heard, ended } = await openSocket(server.url)
  const continued = 'Expect: 100-continue\r\nConnection: close\r\n'
  send(`POST /lookup HTTP/1.1\r\n${HEAD}${continued}Content-Length: ${body.length}\r\n\r\n${body}`)
  await ended
  expect(heard()).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n/)
})

test('a request of HTTP/1.0 needs no host', async () => {
  expect(await sendRaw(server.url, `GET ${FILE} HTTP/1.0\r\n\r\n`)).toMatch(/\r\n\r\n0123456789$/)
})

test('a refused HEAD has no body', async () => {
  const { send, heard, ended } = await openSocket(server.url)
  send(`HEAD ${FILE} HTTP/1.1\r\n${HEAD}X-Long: ${'a'.repeat(9000)}\r\n\r\n`)
  await ended
  expect(heard()).toMatch(/^HTTP\/1\.1 431 .*\r\n\r\n$/s)
})

test('what cannot be read is refused behind the answers that are due, and not in the middle of one', async () => {
  const large = chain.inscribe({ contentType: 'text/plain', body: utf8('y'.repeat(3_000_000)) })
  await server.submit(beefOf(large), ['tm_ordinals'])
  const { send, heard, ended } = await openSocket(server.url)
  send(`GET /content/${large.outpoint(0)} HTTP/1.1\r\n${HEAD}\r\n${GET}\r\nnonsense\r\n\r\n`)
  await ended
  const answers = heard()
  expect(answers.match(/HTTP\/1\.1 \d{3}/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200', 'HTTP/1.1 400'])
  expect(answers).toContain(`\r\n\r\n${'y'.repeat(3_000_000)}HTTP/1.1 200`)
  expectRefusal(answers, UNREADABLE)
})
