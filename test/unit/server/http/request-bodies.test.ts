import { once } from 'node:events'
import { connect } from 'node:net'
import { Duplex, Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import express from 'express'
import { vi } from 'vitest'
import { joinBytes } from '../../../../backend/src/protocol/bytes.js'
import { RequestBodies } from '../../../../src/gateway/http/request-body.js'
import { readLimits } from '../../../../src/server/config/limits.js'
import type { App } from '../../../../src/server/http/hot-path.js'
import { openHttpServer } from '../../../../src/server/http/http-server.js'
import { Transfers } from '../../../../src/server/http/transfers.js'
import { expectError } from '../../../support/gateway/expect-error.js'
import { beefOf, FakeChain } from '../../../support/protocol/fake-chain.js'
import { varint } from '../../../support/protocol/raw-transaction.js'
import { type OpenSocket, openSocket, serving } from '../../../support/server/connections.js'
import {
  type Answer,
  AS_OPERATOR,
  ask,
  OPERATOR,
  posted,
  type Question,
  submission,
  type TestServer,
  useServers,
} from '../../../support/server/test-server.js'

const servers = useServers()
const chain = new FakeChain()
const KiB = 1024
const MiB = 1024 * KiB

const plain = await servers.start(OPERATOR)

/** Every route that takes a body, and what it needs for one to be read. */
const ROUTES: [path: string, headers: Record<string, string>, overlay: boolean][] = [
  ['/submit', { 'X-Topics': '["tm_ordinals"]' }, true],
  ['/lookup', {}, true],
  ['/requestSyncResponse', { 'x-bsv-topic': 'tm_ordinals' }, true],
  ['/requestForeignGASPNode', {}, true],
  ['/requestTopicAnchorTip', { 'x-bsv-topic': 'tm_names' }, true],
  ['/requestRawTransactions', {}, true],
  ['/arc-ingest', {}, true],
  ['/svc/gateway/metadata', {}, false],
  ['/svc/names/origins', {}, false],
  ['/svc/gateway/preview', {}, false],
  ['/admin/block', AS_OPERATOR, true],
  ['/admin/unblock', AS_OPERATOR, true],
  ['/admin/headers', AS_OPERATOR, true],
]

function note(bytes = 1): Uint8Array {
  return beefOf(chain.inscribe({ contentType: 'text/plain', body: new Uint8Array(bytes) }))
}

function encoded(question: Question, coding: string): Question {
  return { ...question, headers: { ...question.headers, 'Content-Encoding': coding } }
}

const BAD_BODY = { status: 400, code: 'BAD_BODY', overlay: true }

describe('a compressed body', () => {
  test.each(ROUTES)('to %s is refused before any of it has come', async (path, headers) => {
    const lines = Object.entries({ ...headers, 'Content-Encoding': 'br', 'Content-Length': '65' })
    const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')
    const { socket, send, heard } = await openSocket(plain.url)
    send(`POST ${path} HTTP/1.1\r\nHost: x\r\n${head}\r\n`)
    await once(socket, 'data')
    const refused = /^HTTP\/1\.1 415 .*\r\nAccept-Encoding: identity\r\n.*"code":"UNSUPPORTED_ENCODING"/s
    expect(heard()).toMatch(refused)
  })

  test.each(['gzip', 'deflate', 'br', 'zstd', 'GZIP', 'gzip, gzip', 'unheard-of'])(
    'in %s is refused with a sentence that says what to do',
    async (coding) => {
      const answer = await plain.ask('/submit', encoded(submission(note(), ['tm_ordinals']), coding))
      const error = expect.stringContaining('send it as identity')
      expectError(answer, { status: 415, code: 'UNSUPPORTED_ENCODING', error, overlay: true })
    },
  )

  test.each(['identity', 'Identity', ''])('is none in %j', async (coding) => {
    const answer = await plain.ask('/submit', encoded(submission(note(), ['tm_ordinals']), coding))
    expect(answer.status).toBe(200)
  })
})

describe('where compressed bodies are accepted', () => {
  const ACCEPTED = { ACCEPT_COMPRESSED_BODIES: 'true' }
  let server: TestServer
  beforeAll(async () => {
    server = await servers.start(ACCEPTED)
  })

  test.each([
    ['gzip', gzipSync],
    ['x-gzip', gzipSync],
    ['deflate', deflateSync],
  ])('%s is', async (coding, compress) => {
    const sent = encoded(submission(compress(note()), ['tm_ordinals']), coding)
    expect((await server.ask('/submit', sent)).status).toBe(200)
    const question = posted({ service: 'ls_names', query: { name: 'a' } })
    const packed = { ...question, body: compress(String(question.body)) }
    expect((await server.ask('/lookup', encoded(packed, coding))).status).toBe(200)
  })

  test('brotli is not, whose window is of 16 MiB', async () => {
    const packed = submission(brotliCompressSync(note()), ['tm_ordinals'])
    const answer = await server.ask('/submit', encoded(packed, 'br'))
    expectError(answer, { status: 415, code: 'UNSUPPORTED_ENCODING', overlay: true })
    expect(answer.headers['accept-encoding']).toBe('gzip, deflate, identity')
  })

  test('the inflated bytes count against the limit of the route', async () => {
    const server = await servers.start({ ...ACCEPTED, MAX_BODY_BYTES: String(MiB) })
    const packed = (bytes: number) => encoded(submission(gzipSync(new Uint8Array(bytes))), 'gzip')
    const over = { status: 413, code: 'TOO_LARGE', overlay: true }
    expectError(await server.ask('/submit', packed(MiB + 1)), over)
    expectError(await server.ask('/submit', packed(100 * MiB)), over)
    expectError(await server.ask('/submit', packed(MiB)), BAD_BODY)
  })

  test('what is not compressed as it says is refused', async () => {
    const full = gzipSync(note())
    for (const body of [note(), full.subarray(0, -9), Buffer.from('no gzip')])
      expectError(await server.ask('/submit', encoded(submission(body), 'gzip')), BAD_BODY)
  })
})

describe('a body', () => {
  afterEach(() => void vi.useRealTimers())

  /** However long this process is held up, a client that sends what is short of its body is not late. */
  function stopTimeouts(): void {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  }

  test('over its limit by its own word is refused before it has come, and dropped as it comes', async () => {
    const server = await servers.start({ MAX_BODY_BYTES: '2000' })
    const { socket, send, heard } = await openSocket(server.url)
    stopTimeouts()
    send('POST /submit HTTP/1.1\r\nHost: x\r\nX-Topics: ["tm_names"]\r\nContent-Length: 2001\r\n\r\n')
    await once(socket, 'data')
    expect(heard()).toMatch(/^HTTP\/1\.1 413 /)
    send(`${'x'.repeat(2001)}GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n`)
    await once(socket, 'data')
    expect(heard()).toMatch(/HTTP\/1\.1 200 OK/)
  })

  test('of which much is still to come when it is refused is not read, and the connection ends', async () => {
    const server = await servers.start({ MAX_BODY_BYTES: '2000' })
    const { socket, send, heard, ended } = await openSocket(server.url)
    send(`POST /submit HTTP/1.1\r\nHost: x\r\nX-Topics: ["tm_names"]\r\nContent-Length: ${64 * MiB}\r\n\r\n`)
    socket.write(Buffer.alloc(32 * MiB))
    await ended
    expect(heard()).toMatch(/^HTTP\/1\.1 413 /)
    expect((await server.ask('/health/live')).status).toBe(200)
  })

  test.each([
    ['of a client over its rate', '/submit', 'X-Forwarded-For: 192.0.2.1', 429],
    ['to no route', '/nothing', 'Connection: close', 404],
    ['without a token', '/admin/block', 'Connection: close', 401],
    ['for a path that is too long', `/${'x'.repeat(20_000)}`, 'X: y', 414],
  ])(
    '%s is dropped as it comes: a connection that was reset would lose the response',
    async (_, path, header, status) => {
      const one = { TRUST_PROXY: '1', SUBMISSIONS_PER_MINUTE: '1' }
      const server = await servers.start({ ...one, ...OPERATOR }, { limits: { maxHeaderBytes: 64_000 } })
      const over: Question = { method: 'POST', headers: { 'X-Forwarded-For': '192.0.2.1' } }
      while ((await server.ask('/submit', over)).status !== 429);
      stopTimeouts()
      const port = Number(new URL(server.url).port)
      const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
      const closed = once(socket, 'close')
      const body = Buffer.alloc(100_000)
      socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\n${header}\r\n`)
      socket.write(`Content-Length: ${2 * body.length}\r\n\r\n`)
      const [answer] = await once(socket.setEncoding('latin1'), 'data')
      expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
      socket.write(body)
      await delay(50)
      socket.end(body)
      expect(await closed).toEqual([false])
      vi.useRealTimers()
    },
  )

  test('that comes in thousands of tiny chunks leaves others their turn', async () => {
    const server = await servers.start()
    const { socket, send, heard } = await openSocket(server.url)
    const head = 'POST /submit HTTP/1.1\r\nHost: x\r\nX-Topics: ["tm_ordinals"]\r\n'
    send(`${head}Transfer-Encoding: chunked\r\n\r\n${'1\r\na\r\n'.repeat(9000)}0\r\n\r\n`)
    let turns = 0
    for (; heard() === ''; turns++) await new Promise((resolve) => setImmediate(resolve))
    expect(heard()).toMatch(/^HTTP\/1\.1 400 /)
    expect(turns).toBeGreaterThan(9000 / 64)
    socket.destroy()
  })

  test('that comes as fast as it is read leaves others their turn', async () => {
    const routes = express().post('/', (request, response) => {
      request.resume().once('end', () => response.end())
    })
    const app = Object.assign((...asked: Parameters<App>) => routes(...asked), { express: routes })
    const server = openHttpServer({ app, limits: readLimits({}, { maxBodyBytes: MiB }), onEnd: () => {} })
    let left = 8 * MiB
    let heard = ''
    const socket = new Duplex({
      read(size) {
        const bytes = Math.min(left, size)
        left -= bytes
        if (bytes > 0) this.push(Buffer.alloc(bytes))
      },
      write(chunk, _, done) {
        heard += chunk
        done()
      },
    })
    socket.push(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${left}\r\n\r\n`)
    server.emit('connection', Object.assign(socket, { destroySoon: () => socket.end() }))
    let turns = 0
    for (; heard === ''; turns++) await new Promise((resolve) => setImmediate(resolve))
    expect(heard).toMatch(/^HTTP\/1\.1 200 /)
    expect(turns).toBeGreaterThan((8 * MiB) / (256 + 64) / 1024)
    socket.destroy()
  })

  test('that comes in thousands of tiny chunks at once is not read on by a server that does not see to that', async () => {
    const app = express().post('/', new RequestBodies().raw({ limit: MiB }))
    const { url } = await serving(app)
    const { socket, send, heard } = await openSocket(url)
    socket.on('error', () => {})
    send(`POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\na\r\n'.repeat(20_000)}`)
    await new Promise((resolve) => socket.once('close', resolve))
    expect(heard()).toBe('')
  })
})

describe('bodies that are being read', () => {
  /** A submission that stops after so many bytes, of a client of its own. */
  async function unfinished(server: TestServer, { client, bytes }: { client: string; bytes: number }) {
    const socket = await openSocket(server.url)
    const head = `Host: x\r\nX-Topics: ["tm_ordinals"]\r\nX-Forwarded-For: ${client}\r\nContent-Length: ${8 * MiB}\r\n`
    socket.send(`POST /submit HTTP/1.1\r\n${head}\r\n`)
    socket.socket.write(Buffer.alloc(bytes))
    return socket
  }

  async function refusals(sockets: OpenSocket[], count: number): Promise<string[]> {
    const heard = (): string[] => sockets.map(({ heard: said }) => said()).filter((text) => text !== '')
    while (heard().length < count) await new Promise((resolve) => setImmediate(resolve))
    return heard()
  }

  const asFrom = (client: string, question: Question): Question => ({
    ...question,
    headers: { ...question.headers, 'X-Forwarded-For': client },
  })

  function expectFull(refused: string[]): void {
    for (const text of refused)
      expect(text).toMatch(/^HTTP\/1\.1 503 .*\r\nRetry-After: 5\r\n.*"code":"NOT_READY"/s)
  }

  test('of many clients hold no more than the setting says, and what is short gets through', async () => {
    const server = await servers.start({ TRUST_PROXY: '1', MAX_UPLOAD_BYTES: String(8 * MiB) })
    const clients = Array.from({ length: 24 }, (_, at) => `192.0.2.${at}`)
    const sockets = await Promise.all(clients.map((client) => unfinished(server, { client, bytes: MiB })))
    // From a sixteenth of it on, an announced body takes room for all of it: one of 8 MiB fits.
    const refused = await refusals(sockets, 16)
    expectFull(refused)
    const short = asFrom('198.51.100.1', submission(note(), ['tm_ordinals']))
    expect((await server.ask('/submit', short)).status).toBe(200)
    for (const { socket } of sockets) socket.destroy()
  })

  test('of one client hold no more than its setting says, and others are not touched', async () => {
    const server = await servers.start({ TRUST_PROXY: '1' }, { limits: { maxClientUploadBytes: 2 * MiB } })
    const other = await unfinished(server, { client: '192.0.2.2', bytes: MiB })
    const one = () => unfinished(server, { client: '192.0.2.1', bytes: MiB })
    const sockets = await Promise.all(Array.from({ length: 6 }, one))
    expectFull(await refusals(sockets, 4))
    expect(other.heard()).toBe('')
    for (const { socket } of [...sockets, other]) socket.destroy()
  })

  test('of one client are two of the largest at once', async () => {
    const server = await servers.start({ TRUST_PROXY: '1' }, { limits: { maxClientUploadBytes: 16 * MiB } })
    const one = () => unfinished(server, { client: '192.0.2.1', bytes: 7 * MiB })
    const both = await Promise.all([one(), one()])
    for (const { socket } of both) socket.write(Buffer.alloc(MiB))
    for (const text of await refusals(both, 2)) expect(text).toMatch(/^HTTP\/1\.1 400 .*"code":"BAD_BODY"/s)
  })

  test('are released when the client leaves', async () => {
    const server = await servers.start({ TRUST_PROXY: '1', MAX_UPLOAD_BYTES: String(MiB) })
    for (let at = 0; at < 5; at++) {
      const left = await unfinished(server, { client: `192.0.2.${at}`, bytes: 600 * KiB })
      left.socket.destroy()
    }
    const large = submission(note(900 * KiB), ['tm_ordinals'])
    const answers: Answer[] = []
    // The host hears of those that left when it comes to it.
    while (answers.at(-1)?.status !== 200) answers.push(await server.ask('/submit', large))
  })

  test.each([
    ['announced', { 'Content-Length': String(8 * MiB) }, 8 * MiB],
    ['in chunks', { 'Transfer-Encoding': 'chunked' }, 8 * MiB],
    // What waits for its turn has no room to spare.
    ['a little over a power of two', { 'Transfer-Encoding': 'chunked' }, 4 * MiB + 1],
  ])('take hardly more memory than they have bytes, %s', async (_, headers, length) => {
    const body = Buffer.alloc(length).map((_, at) => at % 251)
    let held = 0
    let most = 0
    const hold = (bytes: number): void => {
      held += bytes
      most = Math.max(most, held)
    }
    const { signal } = new AbortController()
    const bodies = new RequestBodies({ uploads: { begin: () => ({ signal, hold, end() {} }) } })
    const app = express().post('/', bodies.raw({ limit: 16 * MiB }), ({ body: read }, response) => {
      response.json({ isSame: Buffer.compare(body, read) === 0, memory: read.buffer.byteLength })
    })
    const { url } = await serving(app)
    const answer = await ask(url, '/', { method: 'POST', headers, body })
    expect(answer.json).toEqual({ isSame: true, memory: body.length })
    expect([most, held]).toEqual([8 * MiB, body.length])
  })

  test('take no more memory once they have to make room', async () => {
    const leaving = new AbortController()
    const full = new Error('full')
    let held = 0
    const hold = (bytes: number): void => {
      held += bytes
      if (held > MiB) leaving.abort(full)
    }
    const { signal } = leaving
    const bodies = new RequestBodies({ uploads: { begin: () => ({ signal, hold, end() {} }) } })
    const chunks = Readable.from([Buffer.alloc(MiB), Buffer.alloc(1)])
    const request = Object.assign(chunks, { headers: { 'transfer-encoding': 'chunked' }, complete: true })
    const allocated = vi.spyOn(Buffer, 'allocUnsafeSlow')
    const refusal = await new Promise((resolve) => {
      bodies.raw({ limit: 8 * MiB })(request as never, { locals: {} } as never, resolve)
    })
    expect([refusal, ...allocated.mock.calls.flat()]).toEqual([full, MiB])
    allocated.mockRestore()
  })

  test('are counted as what they take, and one alone is always taken', () => {
    const limits = { maxUploadBytes: 100, maxClientUploadBytes: 60 }
    const transfers = new Transfers({ ...limits, clientOf: ({ ip }) => String(ip) })
    const begin = (ip: string) => transfers.begin({ ip } as never)
    const alone = begin('a')
    alone.hold(1000)
    expect({ held: transfers.held, aborted: alone.signal.aborted }).toEqual({ held: 1000, aborted: false })
    const other = begin('b')
    other.hold(50)
    // The one that held the most made room.
    expect([alone, other].map(({ signal }) => signal.aborted)).toEqual([true, false])
    const more = begin('b')
    more.hold(20)
    expect([[other, more].map(({ signal }) => signal.aborted), transfers.held]).toEqual([[true, false], 20])
    begin('b').hold(30)
    expect(more.signal.aborted).toBe(false)
    more.end()
    more.end()
    alone.hold(5)
    expect(transfers.held).toBe(30)
  })
})

test('off-chain values are up to 1 MiB', async () => {
  const framed = (beef: Uint8Array, behind: number): Question => {
    const asked = submission(joinBytes([varint(beef.length), beef, new Uint8Array(behind)]), ['tm_ordinals'])
    return { ...asked, headers: { ...asked.headers, 'x-includes-off-chain-values': 'true' } }
  }
  expect((await plain.ask('/submit', framed(note(), MiB))).status).toBe(200)
  const over = await plain.ask('/submit', framed(note(), MiB + 1))
  expectError(over, { status: 413, code: 'TOO_LARGE', overlay: true })
})
