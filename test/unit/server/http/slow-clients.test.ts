import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { utf8 } from '../../../../backend/src/protocol/bytes.js'
import { whileReplaced } from '../../../support/gateway/faults.js'
import { beefOf, FakeChain, type FakeTransaction } from '../../../support/protocol/fake-chain.js'
import { openSocket } from '../../../support/server/connections.js'
import { type TestServer, untilReady, useServers } from '../../../support/server/test-server.js'
import { until } from '../../../support/server/waiting.js'

// Clients that are slow, send nothing or are gone, on real connections. The settings keep all times short.

const servers = useServers()
const MANY = 100
const STALL = 2500

const server = await servers.start(
  { KEEP_ALIVE_TIMEOUT_MS: '1500' },
  { limits: { headersTimeout: 2500, requestTimeout: 4000, stallTimeout: STALL } },
)
const chain = new FakeChain()
const MiB = 1024 * 1024
const film = chain.inscribe({ contentType: 'video/mp4', body: new Uint8Array(MiB).fill(7) })
await admit(film)
const note = chain.inscribe({ contentType: 'text/plain', body: utf8('note') })
await admit(note)
/** More than systems hold between the ends of a connection. */
const ASKED = 32
const FILM = `GET /content/${film.outpoint(0)} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(ASKED)
const NOTE = `/content/${note.outpoint(0)}`
const streamOf = (outpoint: string): string => `/svc/gateway/stream/${outpoint}`

/** Not over HTTP: it may take longer than a request may here. */
async function admit(transaction: FakeTransaction, at: TestServer = server): Promise<void> {
  const beef = beefOf(transaction)
  await untilReady(at)
  await at.node.overlay.engine.submit({ beef, topics: ['tm_ordinals'] })
}

async function expectAnswers(at: TestServer): Promise<void> {
  expect((await at.ask(NOTE, { agent: false })).body.toString('utf8')).toBe('note')
}

test('many clients whose headers never end keep nobody out, and their connections end', async () => {
  // Of a connection that stalls as well, as it would while this process does, nobody would read an answer.
  const hasty = await servers.start({}, { limits: { headersTimeout: 2500 } })
  await admit(note, hasty)
  const slow = await Promise.all(Array.from({ length: MANY }, () => openSocket(hasty.url)))
  for (const { send } of slow) send(`GET ${NOTE} HTTP/1.1\r\nHost: x\r\nX-Drip: `)
  let on = true
  const dripping = (async () => {
    while (on) {
      for (const { socket, send } of slow) if (socket.writable) send('X')
      await sleep(50)
    }
  })()
  await expectAnswers(hasty)
  await Promise.all(slow.map(({ ended }) => ended))
  on = false
  await dripping
  for (const { heard } of slow) expect(heard()).toMatch(/^HTTP\/1\.1 408 .*"code":"BAD_BODY"\}$/s)
  await expectAnswers(hasty)
})

test('many clients whose bodies never end, or that say nothing, or nothing more, keep nobody out and are let go', async () => {
  const accepted = acceptedBy(server)
  const slow = await Promise.all(Array.from({ length: MANY }, () => openSocket(server.url)))
  for (const { send } of slow)
    send('POST /submit HTTP/1.1\r\nHost: x\r\nX-Topics: ["tm_names"]\r\nContent-Length: 1000000\r\n\r\nx')
  const mute = await Promise.all(Array.from({ length: MANY }, () => openSocket(server.url)))
  const asked = await openSocket(server.url)
  asked.send(`GET ${NOTE} HTTP/1.1\r\nHost: x\r\n\r\n`)
  await expectAnswers(server)
  await Promise.all([...slow, ...mute, asked].map(({ ended }) => ended))
  await until(() => accepted.every(({ destroyed }) => destroyed))
  expect(asked.heard()).toMatch(/\r\n\r\nnote$/)
  await expectAnswers(server)
})

test('clients that ask for much and read nothing are let go', async () => {
  const accepted = acceptedBy(server)
  const deaf = await Promise.all(Array.from({ length: 8 }, () => openSocket(server.url)))
  for (const { socket, send } of deaf) {
    socket.pause()
    send(FILM)
  }
  await expectAnswers(server)
  // Their own ends stay open.
  await until(() => accepted.every(({ destroyed }) => destroyed))
  expect(accepted.length).toBe(deaf.length + 1)
  // A client that reads on now finds that the bodies end too early.
  const [one] = deaf
  one?.socket.resume()
  await one?.ended
  expect(one?.heard().length).toBeLessThan(ASKED * MiB)
})

test('a client that reads slowly gets all of it', async () => {
  const patient = await servers.start({ REQUEST_TIMEOUT_MS: '50000' })
  await admit(film, patient)
  const { socket, send, heard } = await openSocket(patient.url)
  // The last one ends the connection.
  send(FILM.replace(/\r\n$/, 'Connection: close\r\n\r\n'))
  const end = once(socket, 'end')
  socket.pause()
  await sleep(800)
  socket.resume()
  await end
  const bodies = heard().split(/HTTP\/1\.1 200 OK\r\n.*?\r\n\r\n/s)
  expect(bodies.map(({ length }) => length)).toEqual([0, ...new Array(ASKED).fill(MiB)])
})

test('nobody is let go while an answer is worked on, however long that takes', async () => {
  const { streams } = server.node.graph.served
  const summary = streams.summary.bind(streams)
  const other = chain.inscribe({ contentType: 'text/plain', body: utf8('another') })
  await admit(other)
  let asked = 0
  const body = await whileReplaced(streams, 'summary', {
    by: async (query) => {
      asked++
      await sleep(1.5 * STALL)
      return await summary(query)
    },
    during: async () => (await server.ask(streamOf(other.outpoint(0)))).body.toString('utf8'),
  })
  expect({ body, asked }).toEqual({ body: 'another', asked: 1 })
})

test('connections over their number are closed, and those under it answered', async () => {
  const few = await servers.start({ MAX_CONNECTIONS: '2', KEEP_ALIVE_TIMEOUT_MS: '60000' })
  const held = [await openSocket(few.url), await openSocket(few.url)]
  const third = await openSocket(few.url)
  await third.ended
  expect(third.heard()).toBe('')
  held[0]?.send('GET /health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
  await held[0]?.ended
  expect(held[0]?.heard()).toMatch(/^HTTP\/1\.1 200 /)
  await until(async () => (await few.ask('/health/live').catch(() => undefined))?.status === 200)
})

test('over their number, the address with the most loses one on which nothing is due', async () => {
  const few = await servers.start({ MAX_CONNECTIONS: '3', KEEP_ALIVE_TIMEOUT_MS: '60000' })
  const [busy, idle, last] = [await openSocket(few.url), await openSocket(few.url), await openSocket(few.url)]
  await whileSummaryWaits(few, async (isAsked, answer) => {
    busy.send(`GET ${streamOf(note.outpoint(0))} HTTP/1.1\r\nHost: x\r\n\r\n`)
    await until(isAsked)
    const other = await openSocket(few.url, '127.0.0.2')
    other.send('GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n')
    await idle.ended
    await until(() => other.heard().startsWith('HTTP/1.1 200 '))
    answer()
    await until(() => busy.heard().startsWith('HTTP/1.1 404 '))
    last.send('GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n')
    await until(() => last.heard().startsWith('HTTP/1.1 200 '))
  })
})

test('a client that closes its sending side behind a submission hears what came of it', async () => {
  const { socket, heard, ended } = await openSocket(server.url)
  const beef = beefOf(note)
  socket.write('POST /submit HTTP/1.1\r\nHost: x\r\nX-Topics: ["tm_ordinals"]\r\n')
  socket.write(`Content-Type: application/octet-stream\r\nContent-Length: ${beef.length}\r\n\r\n`)
  socket.end(beef)
  await ended
  expect(heard()).toMatch(/^HTTP\/1\.1 200 /)
})

test('a client that closes its sending side while an answer is sent gets all of it', async () => {
  const long = chain.inscribe({ contentType: 'video/mp4', body: new Uint8Array(16 * MiB).fill(7) })
  await admit(long)
  const { socket, heard, ended } = await openSocket(server.url)
  socket.write(`GET /content/${long.outpoint(0)} HTTP/1.1\r\nHost: x\r\n\r\n`)
  await once(socket, 'data')
  socket.end()
  await ended
  expect(heard().length).toBeGreaterThan(16 * MiB)
})

test('a server that stops waits for requests in flight, and not for connections without one', async () => {
  const stopping = await servers.start({ KEEP_ALIVE_TIMEOUT_MS: '300000' })
  const mute = await openSocket(stopping.url)
  const idle = await openSocket(stopping.url)
  idle.send('GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n')
  const begun = await openSocket(stopping.url)
  begun.send('GET /health/live HTTP/1.1\r\nHost: x\r\n\r\nGET /health/li')
  const refused = await openSocket(stopping.url)
  refused.send('POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc')
  await until(() => [idle, begun, refused].every(({ heard }) => heard().endsWith('}')))
  await whileSummaryWaits(stopping, async (isAsked, answer) => {
    const asked = await openSocket(stopping.url)
    asked.send(`GET ${streamOf(note.outpoint(0))} HTTP/1.1\r\nHost: x\r\n\r\n`)
    await until(isAsked)
    const stopped = stopping.stop()
    await Promise.all([mute, idle, begun, refused].map(({ ended }) => ended))
    expect(asked.heard()).toBe('')
    answer()
    await asked.ended
    // The answer says that the connection ends, so that the client does not ask on it again.
    expect(asked.heard()).toMatch(/^HTTP\/1\.1 404 [\s\S]*\r\nConnection: close\r\n/)
    expect(idle.heard()).toMatch(/^HTTP\/1\.1 200 [\s\S]*\r\nConnection: keep-alive\r\n/)
    await expect(stopping.ask('/health/live')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    await stopped
  })
})

test('one address has so many connections and no more, unless a proxy stands before the host', async () => {
  const env = { MAX_CLIENT_CONNECTIONS: '2', KEEP_ALIVE_TIMEOUT_MS: '60000' }
  const few = await servers.start(env)
  const held = [await openSocket(few.url), await openSocket(few.url)]
  const third = await openSocket(few.url)
  await third.ended
  expect(third.heard()).toBe('')
  held[0]?.socket.destroy()
  await until(async () => (await few.ask('/health/live').catch(() => undefined))?.status === 200)
  const proxied = await servers.start({ ...env, TRUST_PROXY: '1' })
  await Promise.all(Array.from({ length: 3 }, () => openSocket(proxied.url)))
  expect((await proxied.ask('/health/live')).status).toBe(200)
})

/** Holds what a stream is summed up to, as none, until a test lets it be answered. */
async function whileSummaryWaits(
  { node }: TestServer,
  during: (isAsked: () => boolean, answer: () => void) => Promise<void>,
): Promise<void> {
  let answer = (): void => undefined
  const mayAnswer = new Promise<undefined>((resolve) => (answer = () => resolve(undefined)))
  let asked = 0
  await whileReplaced(node.graph.served.streams, 'summary', {
    by() {
      asked++
      return mayAnswer
    },
    during: () => during(() => asked > 0, answer),
  })
}

/** The server's ends of the connections that are opened to it from now on. */
function acceptedBy({ url }: TestServer): Socket[] {
  const port = Number(new URL(url).port)
  const accepted: Socket[] = []
  const listener = (message: unknown): void => {
    const { socket } = message as { socket: Socket }
    if (socket.localPort === port) accepted.push(socket)
  }
  subscribe('net.server.socket', listener)
  onTestFinished(() => void unsubscribe('net.server.socket', listener))
  return accepted
}
