import { expectError } from '../../../support/gateway/expect-error.js'
import { keptLog } from '../../../support/gateway/faults.js'
import { directory, publisher, text } from '../../../support/gateway/site.js'
import { FakeChain } from '../../../support/protocol/fake-chain.js'
import { sendRaw } from '../../../support/server/connections.js'
import { useServers } from '../../../support/server/test-server.js'

// Types, headers, methods and connections that somebody made to see what happens.

const servers = useServers()
const { logger, records } = keptLog()
const server = await servers.start({}, { logger })
const published = publisher({ server, chain: new FakeChain() })

const file = await published(text('0123456789'))
const FILE = `/content/${file.outpoint(0)}`
const { headers: ofFile } = await server.ask(FILE)
const TAG = ofFile.etag ?? ''

afterEach(() => {
  // Whatever was sent, it was not our fault.
  expect(records.splice(0)).toEqual([])
})

describe('a content type', () => {
  const UNTYPED = 'application/octet-stream'
  const inLatin1 = (inscribed: string): string => Buffer.from(inscribed, 'utf8').toString('latin1')
  const long = (length: number): string => 'text/plain;x='.padEnd(length, 'y')
  test.each<[string, string, string]>([
    ['with a header behind it', 'text/html\r\nX-Evil: 1\r\n\r\n<script>', UNTYPED],
    // In the bytes that are inscribed; clients read them as Latin-1.
    [
      'with a letter whose low byte is a line feed',
      'text/html;x=\u010aX-Evil: 1',
      inLatin1('text/html;x=\u010aX-Evil: 1'),
    ],
    ['of 256 bytes', long(256), UNTYPED],
    ['of 255 bytes', long(255), long(255)],
  ])('%s', async (_, inscribed, served) => {
    const page = await published(text('<script>1</script>', inscribed))
    for (const method of ['GET', 'HEAD']) {
      const { status, headers } = await server.ask(`/content/${page.outpoint(0)}`, { method })
      expect({ status, type: headers['content-type'] }).toEqual({ status: 200, type: served })
      expect(headers['x-evil']).toBeUndefined()
      expect(headers['x-content-type-options']).toBe('nosniff')
      if (served.startsWith('text/html')) expect(headers['content-security-policy']).toMatch(/^sandbox /)
    }
  })
})

describe('a method', () => {
  test.each(['POST', 'PUT', 'DELETE', 'PATCH', 'TRACE', 'PROPFIND', 'PURGE'])(
    '%s is of no route to content',
    async (method) => {
      for (const path of [FILE, '/content/x', `${FILE}/a`]) {
        const answer = await server.ask(path, { method, body: 'body' })
        expectError(answer, { status: 405, code: 'METHOD_NOT_ALLOWED' })
        expect(answer.headers.allow).toBe('GET, HEAD')
      }
    },
  )

  test.each(['BREW', 'get', 'GET\t'])('%j is none', async (method) => {
    expect(await sendRaw(server.url, `${method} ${FILE} HTTP/1.1\r\nHost: x\r\n\r\n`)).toMatch(
      /^HTTP\/1\.1 400 /,
    )
  })

  test('CONNECT is not a way through', async () => {
    expect(await sendRaw(server.url, 'CONNECT elsewhere.example:80 HTTP/1.1\r\nHost: x\r\n\r\n')).toBe('')
  })

  test('in a header or a query is none', async () => {
    const headers = { 'X-HTTP-Method-Override': 'DELETE', 'X-Method-Override': 'HEAD' }
    expect((await server.ask(`${FILE}?_method=DELETE`, { headers })).body.toString('utf8')).toBe('0123456789')
  })
})

describe('headers', () => {
  test('of 20 KiB are too many bytes', async () => {
    expect((await server.ask(FILE, { headers: { 'X-Long': 'a'.repeat(20 * 1024) } })).status).toBe(431)
    const many = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`X-${at}`, 'a'.repeat(100)]))
    expect((await server.ask(FILE, { headers: many })).status).toBe(431)
  })

  test('however many are read past', async () => {
    const flood = 'x: y\r\n'.repeat(5000)
    const answer = await sendRaw(
      server.url,
      `GET ${FILE} HTTP/1.1\r\nHost: x\r\n${flood}Connection: close\r\n\r\n`,
    )
    expect(answer).toMatch(/^HTTP\/1\.1 200 .*\r\n\r\n0123456789$/s)
  })

  test.each([
    ['two lengths', 'Content-Length: 1\r\nContent-Length: 2\r\n'],
    ['a length and chunks', 'Content-Length: 5\r\nTransfer-Encoding: chunked\r\n'],
    ['a length that is none', 'Content-Length: -1\r\n'],
    ['a name with a space', 'X Evil: 1\r\n'],
    ['a line without a name', 'evil\r\n'],
  ])('with %s are refused before they are read', async (_, lines) => {
    expect(await sendRaw(server.url, `GET ${FILE} HTTP/1.1\r\nHost: x\r\n${lines}\r\n`)).toMatch(
      /^HTTP\/1\.1 400 /,
    )
  })

  test('that ask for another host, protocol or address change nothing', async () => {
    const site = await published(directory({ 'index.html': '_1' }), text('index'))
    const headers = {
      Host: 'elsewhere.example',
      'X-Forwarded-Host': 'elsewhere.example',
      'X-Forwarded-Proto': 'https',
      'X-Original-URL': '/health',
      Forwarded: 'host=elsewhere.example',
    }
    const path = `/content/${site.outpoint(0)}`
    expect((await server.ask(path, { headers })).headers.location).toBe(`${path}/index.html`)
  })
})

describe('ranges', () => {
  const asked = async (range: string): ReturnType<typeof server.ask> =>
    await server.ask(FILE, { headers: { Range: range } })

  test('of which there are 10,000 are too many bytes', async () => {
    expect((await asked(`bytes=${new Array(10_000).fill('0-0').join()}`)).status).toBe(431)
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
  ])('%s', async (_, ranges, status, expected) => {
    const answer = await asked(`bytes=${ranges.slice(0, -1)}`)
    expect({ status: answer.status, body: answer.body.toString('utf8') }).toEqual({ status, body: expected })
  })

  test('that start behind the end by 15,000 digits have no byte', async () => {
    const answer = await asked(`bytes=${'9'.repeat(15_000)}-`)
    expectError(answer, { status: 416, code: 'RANGE_NOT_SATISFIABLE' })
    expect(answer.headers['content-range']).toBe('bytes */10')
  })
})

describe('conditions', () => {
  const others = `"${'a'.repeat(60)}", `.repeat(190)

  test.each<[string, string, number]>([
    ['of 12 KiB without the tag', others.slice(0, -2), 200],
    ['of 12 KiB with the tag at their end', `${others}${TAG}`, 304],
    ['of 12 KiB of commas and the tag', `${','.repeat(12 * 1024)}${TAG}`, 304],
    ['of 12 KiB of quotes', '"'.repeat(12 * 1024), 200],
    ['of 12 KiB of spaces and a word', `${' '.repeat(6 * 1024)}x${' '.repeat(6 * 1024)}x`, 200],
  ])('%s', async (_, value, expected) => {
    const { status, headers, body } = await server.ask(FILE, { headers: { 'If-None-Match': value } })
    expect({ status, tag: headers.etag }).toEqual({ status: expected, tag: TAG })
    expect(body.toString('utf8')).toBe(expected === 304 ? '' : '0123456789')
  })
})

describe('a connection', () => {
  test('on which 60 requests come at once has their answers in order', async () => {
    const kinds = [
      [FILE, 'HTTP/1.1 200 OK'],
      ['/content/x', 'HTTP/1.1 400 Bad Request'],
      ['/nowhere', 'HTTP/1.1 404 Not Found'],
    ] as const
    const wanted = Array.from({ length: 60 }, (_, at) => kinds[at % 3] ?? kinds[0])
    const requests = wanted.map(([path]) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
    const last = `GET ${FILE} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`
    const answers = await sendRaw(server.url, requests.join('') + last)
    const lines = answers.match(/HTTP\/1\.1 \d{3} [A-Za-z ]+/g)
    expect(lines).toEqual([...wanted.map(([, line]) => line), 'HTTP/1.1 200 OK'])
  })

  test('that sends a body along with a GET has it read past', async () => {
    const body = 'GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n'
    const one = `GET ${FILE} HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`
    const last = `HEAD ${FILE} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`
    const answers = await sendRaw(server.url, one + last)
    expect(answers.match(/HTTP\/1\.1 \d{3}/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200'])
  })
})
