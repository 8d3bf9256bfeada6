import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { Worker } from 'node:worker_threads'
import express from 'express'
import { errorResponse } from '../../../../src/gateway/http/error-response.js'
import {
  listenForReaders,
  newSecret,
  passOn,
  receivePassedOn,
  type WriterAddress,
} from '../../../../src/server/workers/passed-on.js'
import { sendRaw, useSockets } from '../../../support/server/connections.js'
import { ask, SILENT } from '../../../support/server/test-server.js'
import { loopTurns, until } from '../../../support/server/waiting.js'

const MiB = 1024 * 1024
const connected = useSockets()
const closing: (() => Promise<void>)[] = []

afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

async function closed(server: Server): Promise<void> {
  server.closeAllConnections()
  await new Promise((done) => server.close(done))
}

type Answering = (request: IncomingMessage, response: ServerResponse) => void

/** A process that writes, which answers as it is said here, and a reader that passes everything on to it. */
async function open(answer: Answering): Promise<{
  url: string
  writer: WriterAddress
  /** The connections of clients to the reader. */
  clients: Socket[]
  stopWriter(): Promise<void>
}> {
  const secret = newSecret()
  const writerServer = createServer(receivePassedOn(Object.assign(answer, { express: express() }), secret))
  const { place, remove } = await listenForReaders(writerServer)
  const writer = { place, secret }
  const stopWriter = (): Promise<void> => closed(writerServer).then(remove)
  const reader = createServer(
    express()
      .use(passOn(writer))
      .use(errorResponse({ logger: SILENT })),
  )
  const clients: Socket[] = []
  reader.on('connection', (socket) => clients.push(socket))
  await once(reader.listen(0, '127.0.0.1'), 'listening')
  closing.push(() => closed(reader), stopWriter)
  const { port } = reader.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, writer, clients, stopWriter }
}

test('the other side sees a request as it was sent: its path, headers, body and address', async () => {
  const seen: unknown[] = []
  const { url } = await open((asked, response) => {
    const { method, url, socket, headers } = asked
    seen.push({ method, url, address: socket.remoteAddress, headers })
    asked.pipe(response.writeHead(202, { 'X-Answer': ['a', 'b'] }))
  })
  const headers = { 'X-Twice': ['1', '2'], 'X-Minetree-Passed-On': 'forged 192.0.2.1', 'X-Request-Id': 'own' }
  const answer = await ask(url, '/a%20b//c?d=%C3%A9', {
    method: 'PUT',
    headers,
    body: 'body',
  })
  expect({ status: answer.status, body: answer.body.toString() }).toEqual({ status: 202, body: 'body' })
  expect(answer.headers['x-answer']).toBe('a, b')
  expect(seen).toEqual([
    {
      method: 'PUT',
      url: '/a%20b//c?d=%C3%A9',
      address: '127.0.0.1',
      headers: expect.objectContaining({ 'x-twice': '1, 2', 'content-length': '4', host: new URL(url).host }),
    },
  ])
  expect(seen).not.toEqual([
    { headers: expect.objectContaining({ 'x-minetree-passed-on': expect.anything() }) },
  ])
})

test('a request without a body has none there', async () => {
  const seen: unknown[] = []
  const { url } = await open(({ headers }, response) => {
    seen.push([headers['content-length'], headers['transfer-encoding']])
    response.end()
  })
  const bodies = ['', 'Content-Length: 1\r\n\r\nx', 'Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n']
  for (const method of ['GET', 'POST'])
    for (const body of bodies)
      await sendRaw(url, `${method} / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${body}\r\n`)
  const expected = [
    [undefined, undefined],
    ['1', undefined],
    [undefined, 'chunked'],
  ]
  expect(seen).toEqual([...expected, ...expected])
})

test('a body can be refused before any of it has come', async () => {
  const { url } = await open((_request, response) => response.writeHead(415).end())
  const heads = ['Content-Length: 1000', 'Transfer-Encoding: chunked']
  for (const head of heads)
    expect(await sendRaw(url, `POST / HTTP/1.1\r\nHost: a\r\n${head}\r\n\r\n`)).toMatch(/^HTTP\/1.1 415 /)
})

test('a body that is refused before it has come, and is longer than what is buffered, holds up no later request', async () => {
  const { url } = await open(({ method }, response) =>
    response.writeHead(method === 'POST' ? 404 : 200).end(),
  )
  const { socket, send, heard } = await connected(url)
  send(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${MiB}\r\n\r\n`)
  await once(socket, 'data')
  send('x'.repeat(MiB))
  send('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
  await until(() => heard().includes('HTTP/1.1 200 '), 'the next request is answered')
  expect(heard()).toMatch(/^HTTP\/1.1 404 /)
})

test('a request with more headers than Node keeps has its host, its id and the address of its client', async () => {
  const seen: unknown[] = []
  const { url } = await open(({ headers, socket }, response) => {
    seen.push([headers.host, headers['x-request-id'], socket.remoteAddress])
    response.end()
  })
  const counts = [996, 998, 999, 1000, 1500]
  for (const count of counts) {
    const lines = Array.from({ length: count }, (_, at) => `x${at}:1\r\n`).join('')
    expect(await sendRaw(url, `GET / HTTP/1.1\r\nHost: a\r\n${lines}\r\n`)).toMatch(/^HTTP\/1.1 200 /)
  }
  expect(seen).toEqual(counts.map(() => ['a', expect.any(String), '127.0.0.1']))
})

test('a request without the secret is not answered', async () => {
  let isAnswered = false
  const { url, writer } = await open((_request, response) => {
    isAnswered = true
    response.end()
  })
  for (const shown of [undefined, `${'0'.repeat(64)} 127.0.0.1`, writer.secret.slice(1), '']) {
    const headers = shown === undefined ? {} : { 'X-Minetree-Passed-On': shown }
    const asked = request({ ...writer.place, path: '/', headers }).end()
    const [error] = (await once(asked, 'error')) as [NodeJS.ErrnoException]
    expect(error.code).toBe('ECONNRESET')
  }
  expect(isAnswered).toBe(false)
  expect((await ask(url, '/')).status).toBe(200)
})

test('a client that leaves ends its request there', async () => {
  const arrived: IncomingMessage[] = []
  const { url } = await open((asked) => void arrived.push(asked))
  const asked = request(url, { method: 'POST', agent: false }).on('error', () => {})
  asked.write('beginning')
  const there = await until(() => arrived[0], 'the request is passed on')
  asked.destroy()
  await until(() => there.destroyed, 'it ends there')
})

test('an answer that breaks off breaks off for the client', async () => {
  const { url } = await open((_request, response) => {
    response.writeHead(200, { 'Content-Length': '10' }).write('half')
    setImmediate(() => response.destroy())
  })
  await expect(ask(url, '/')).rejects.toThrow()
})

test('without the process that writes, it is 503', async () => {
  const { url, stopWriter } = await open((_request, response) => void response.end())
  expect((await ask(url, '/')).status).toBe(200)
  await stopWriter()
  for (const question of [{}, { method: 'POST', body: 'x'.repeat(MiB) }])
    expect(await ask(url, '/', question)).toMatchObject({ status: 503, json: { code: 'NOT_READY' } })
})

test('a connection that was closed while it was idle costs nobody an answer', async () => {
  const used = new WeakSet<Socket>()
  const { url } = await open(({ socket }, response) => {
    // As if the end of the connection and the next request had met.
    if (used.has(socket)) socket.destroy()
    else response.end()
    used.add(socket)
  })
  for (let times = 0; times < 3; times++) expect((await ask(url, '/')).status).toBe(200)
  // It may have had an effect.
  expect((await ask(url, '/', { method: 'POST', body: 'x' })).status).toBe(503)
})

test('of one connection, requests are passed on one at a time', async () => {
  const connections = new Set<Socket>()
  const { url } = await open((asked, response) => {
    connections.add(asked.socket)
    setImmediate(() => response.end(asked.url))
  })
  const paths = Array.from({ length: 20 }, (_, number) => `/${number}`)
  const answers = await sendRaw(url, paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`).join(''))
  expect([...answers.matchAll(/\r\n\r\n(\/\d+)/g)].map(([, path]) => path)).toEqual(paths)
  expect(connections.size).toBe(1)
})

test('what comes while too many connections wait to be accepted is answered a moment later', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'minetree-'))
  const place = { socketPath: join(folder, 'writer') }
  // It accepts nothing until it may go on.
  const go = new Int32Array(new SharedArrayBuffer(4))
  const busy = new Worker(
    `const { workerData: { place, go }, parentPort } = require('node:worker_threads')
    const server = require('node:http').createServer((_request, response) => response.end())
    server.listen({ path: place.socketPath, backlog: 1 }, () => {
      parentPort.postMessage('listening')
      Atomics.wait(go, 0, 0)
    })`,
    { eval: true, workerData: { place, go } },
  )
  await once(busy, 'message')
  const reader = createServer(
    express()
      .use(passOn({ place, secret: newSecret() }))
      .use(errorResponse({ logger: SILENT })),
  )
  await once(reader.listen(0, '127.0.0.1'), 'listening')
  closing.push(
    () => closed(reader),
    async () => void (await busy.terminate()),
    () => rm(folder, { recursive: true }),
  )
  const url = `http://127.0.0.1:${(reader.address() as AddressInfo).port}`
  const asked = Promise.all(Array.from({ length: 10 }, () => ask(url, '/')))
  await loopTurns()
  Atomics.store(go, 0, 1)
  Atomics.notify(go, 0)
  const answers = await asked
  expect(answers.filter(({ status }) => status !== 200)).toEqual([])
})

test('a body is read no faster than it is taken there', async () => {
  const arrived: IncomingMessage[] = []
  const { url, clients } = await open((asked) => void arrived.push(asked))
  const asked = request(url, { method: 'POST', agent: false }).on('error', () => {})
  Readable.from(chunks()).pipe(asked)
  await until(() => arrived[0], 'the request is passed on')
  await loopTurns()
  expect(clients[0]?.bytesRead).toBeLessThan(8 * MiB)
  asked.destroy()
})

test('an answer is read no faster than the client takes it', async () => {
  let sent = 0
  const { url } = await open((_request, response) => {
    const counted = Readable.from(
      chunks((bytes) => {
        sent += bytes
      }),
    )
    counted.pipe(response)
  })
  const asked = request(url, { agent: false }).end()
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  await loopTurns()
  expect(sent).toBeLessThan(32 * MiB)
  response.pipe(new Writable({ write: (_chunk, _encoding, done) => done() }))
  await until(() => sent === LENGTH, 'the rest is sent')
})

const LENGTH = 100 * MiB

function* chunks(onChunk: (bytes: number) => void = () => {}): Generator<Buffer> {
  const chunk = Buffer.alloc(MiB / 4)
  for (let sent = 0; sent < LENGTH; sent += chunk.length) {
    onChunk(chunk.length)
    yield chunk
  }
}
