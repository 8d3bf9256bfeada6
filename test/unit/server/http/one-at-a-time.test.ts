import { vi } from 'vitest'
import { utf8 } from '../../../../backend/src/protocol/bytes.js'
import { whileReplaced } from '../../../support/gateway/faults.js'
import { beefOf, FakeChain } from '../../../support/protocol/fake-chain.js'
import { type OpenSocket, openSocket } from '../../../support/server/connections.js'
import { treeOf, useServers } from '../../../support/server/test-server.js'
import { loopTurns, until } from '../../../support/server/waiting.js'

// A connection has one request at a time: what a client sends without waiting stays in order, and holds no more.

const MiB = 1024 * 1024
const servers = useServers()
const chain = new FakeChain()
/** Every client has two places for reads. */
const env = { ...treeOf(chain.deployment), TRUST_PROXY: '1', READS_PER_MINUTE: '0' }
const server = await servers.start(env, { limits: { maxClientReads: 2 } })
await server.take(beefOf(chain.genesis), ['tm_names'])
const mint = chain.mint('a')
await server.take(beefOf(mint), ['tm_names', 'tm_ordinals'])
/** Longer than what systems hold between the ends of a connection. */
const LONG = 12 * MiB
const film = chain.inscribe({ contentType: 'video/mp4', body: new Uint8Array(LONG).fill(7) })
await server.take(beefOf(film), ['tm_ordinals'])
const note = chain.inscribe({ contentType: 'text/plain', body: utf8('note') })
await server.take(beefOf(note), ['tm_ordinals'])

const CLIENT = 'X-Forwarded-For: 192.0.2.1\r\n'

interface Sent {
  method?: string
  path: string
  headers?: string
  body?: string
}

function written({ method = 'GET', path, headers = '', body }: Sent, id: string): string {
  const length = body === undefined ? '' : `Content-Length: ${Buffer.byteLength(body)}\r\n`
  const head = `${method} ${path} HTTP/1.1\r\nHost: x\r\nX-Request-Id: ${id}\r\n${CLIENT}${headers}${length}\r\n`
  return head + (body ?? '')
}

const post = (path: string, body: unknown, headers = ''): Sent => ({
  ...{ method: 'POST', path, body: typeof body === 'string' ? body : JSON.stringify(body) },
  headers: `Content-Type: application/json\r\n${headers}`,
})

/** One of every kind: of this process, of the store, from memory, with a body, refused, without a route. */
const ROUTES: Sent[] = [
  { path: '/health/live' },
  { path: '/health' },
  { path: '/metrics' },
  { path: '/deployment.json' },
  { path: '/svc/names/origin/a' },
  { path: `/content/${note.outpoint(0)}` },
  { path: `/content/${note.outpoint(0)}`, headers: 'Range: bytes=1-2\r\n' },
  { method: 'HEAD', path: `/svc/gateway/metadata/${note.outpoint(0)}` },
  { method: 'OPTIONS', path: '/svc/names/origins' },
  post('/svc/names/origins', [note.outpoint(0)]),
  post('/svc/gateway/metadata', [note.outpoint(0)]),
  post('/svc/gateway/preview', '<p>'),
  post('/lookup', { service: 'ls_names', query: { name: 'a' } }),
  post('/requestSyncResponse', { version: 1, since: 0 }, 'x-bsv-topic: tm_names\r\n'),
  post('/submit', 'no BEEF', 'X-Topics: ["tm_names"]\r\n'),
  post('/svc/names/home', ''),
  { path: '/nothing' },
  { path: '/name/a', headers: 'Accept: text/html\r\n' },
]

const idsOf = (heard: string): string[] =>
  heard
    .split('\r\nX-Request-Id: ')
    .slice(1)
    .map((rest) => rest.slice(0, rest.indexOf('\r')))

test('pairs of requests of all kinds that a client sends at once are answered, in order', async () => {
  for (const [at, one] of ROUTES.entries()) {
    // In both orders: a, b, a, c, a, d.
    const sent = ROUTES.slice(at).flatMap((other) => [one, other])
    const { socket, heard, send } = await openSocket(server.url)
    send(sent.map((each, place) => written(each, `n${place}`)).join(''))
    await until(() => idsOf(heard()).length >= sent.length, `answers beside ${one.path}`)
    expect(idsOf(heard())).toEqual(sent.map((_, place) => `n${place}`))
    socket.destroy()
  }
})

/** Asks for something long and reads none of it, and then for something that shows in the store. */
async function unread(long: Sent): Promise<OpenSocket & { marker: string }> {
  const marker = `${(++marked).toString(16).padStart(64, '9')}_0`
  const client = await openSocket(server.url)
  client.socket.pause()
  client.send(written(long, 'long') + written({ path: `/content/${marker}` }, 'next'))
  return { ...client, marker }
}
let marked = 0

const LOOKUP = { service: 'ls_ordinals', query: { outpoint: film.outpoint(0) } }
const NODE = { graphID: `${film.txid}.0`, txid: film.txid, outputIndex: 0 }
const LONG_ANSWERS: [what: string, sent: Sent][] = [
  ['content', { path: `/content/${film.outpoint(0)}` }],
  ['a range of it', { path: `/content/${film.outpoint(0)}`, headers: `Range: bytes=1-${LONG - 2}\r\n` }],
  ['several ranges', { path: `/content/${film.outpoint(0)}`, headers: `Range: bytes=0-1,2-${LONG}\r\n` }],
  ['a stream', { path: `/svc/gateway/stream/${film.outpoint(0)}` }],
  ['a proof', { path: `/svc/gateway/proof/${film.outpoint(0)}` }],
  ['a BEEF', { path: `/svc/beef/${film.txid}` }],
  ['a transaction', { path: `/svc/beef/${film.txid}/tx` }],
  ['a lookup', post('/lookup', LOOKUP)],
  ['a lookup in binary', post('/lookup', LOOKUP, 'X-Aggregation: yes\r\n')],
  ['a node for a peer', post('/requestForeignGASPNode', NODE, 'x-bsv-topic: tm_ordinals\r\n')],
]

test.each(LONG_ANSWERS)(
  'while nobody reads %s, the next request of the connection is not begun',
  async (_, sent) => {
    const asked = new Set<string>()
    const { ordinals } = server.node.graph.served
    const output = ordinals.output.bind(ordinals)
    await whileReplaced(ordinals, 'output', {
      by: (outpoint) => {
        asked.add(`${outpoint.txid}_${outpoint.vout}`)
        return output(outpoint)
      },
      during: async () => {
        const { socket, heard, marker } = await unread(sent)
        // Bytes of the answer are there, and the store was read as far as they go.
        await until(() => socket.bytesRead > 0 || socket.readableLength > 0)
        await loopTurns()
        expect(asked.has(marker)).toBe(false)
        socket.resume()
        await until(() => idsOf(heard()).length === 2)
        expect([idsOf(heard()), asked.has(marker)]).toEqual([['long', 'next'], true])
        socket.destroy()
      },
    })
  },
)

const chunk = (data: string, extension = ''): string =>
  `${data.length.toString(16)}${extension}\r\n${data}\r\n`
/** As text with blank lines has it, and like what a body in chunks ends with. */
const BLANK_LINES = '\r\n\r\n'.repeat(20_000)
const NO_END = '0\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n'

test.each([
  ['blank lines', [chunk(BLANK_LINES)], BLANK_LINES],
  ['what looks like an end', [chunk(NO_END), chunk('a'), chunk(NO_END)], `${NO_END}a${NO_END}`],
  ['extensions', [chunk(NO_END, ';a=b'), chunk('ff', ';c="d"')], `${NO_END}ff`],
])('a body in chunks with %s is one body, and the next request is answered', async (_, chunks, body) => {
  const headers = `Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n`
  for (const trailers of ['', 'X-A: 0\r\nX-B: 1\r\n']) {
    const first = `${written({ method: 'POST', path: '/svc/gateway/preview', headers }, 'first')}${chunks.join('')}0\r\n${trailers}\r\n`
    const all = first + written(ROUTES[0] as Sent, 'second')
    const inSteps = all.length < 1000 ? 1 : 30_000
    for (const step of [all.length, inSteps]) {
      const { socket, heard, send } = await openSocket(server.url)
      socket.setNoDelay(true)
      for (let at = 0; at < all.length; at += step) {
        send(all.slice(at, at + step))
        if (step < all.length) await new Promise((resolve) => setImmediate(resolve))
      }
      await until(() => socket.destroyed || idsOf(heard()).length >= 2, 'both answers')
      expect(idsOf(heard())).toEqual(['first', 'second'])
      expect(heard()).toContain(`\r\n\r\n${body}HTTP/1.1 200`)
      socket.destroy()
    }
  }
})

test('bodies that never end keep no place of those that their client has for reads', async () => {
  const { paths } = (await server.ask('/openapi.json')).json as { paths: Record<string, object> }
  const posts = Object.entries(paths).filter(([, operations]) => 'post' in operations)
  expect(posts.length).toBeGreaterThan(9)
  for (const [path] of [...posts, ['/nothing'], [`/content/${note.outpoint(0)}`]] as [string][]) {
    const endless = await Promise.all(Array.from({ length: 6 }, () => openSocket(server.url)))
    for (const { send } of endless)
      send(`POST ${path} HTTP/1.1\r\nHost: x\r\n${CLIENT}x-bsv-topic: tm_names\r\nContent-Length: 9\r\n\r\n[`)
    const { send, heard } = await openSocket(server.url)
    send(written({ path: `/content/${note.outpoint(0)}` }, 'read'))
    await until(() => heard().endsWith('note'), `a read beside bodies to ${path}`)
    for (const { socket } of endless) socket.destroy()
  }
})

test.each([1, 2, 3, 7, 64])('requests that come in pieces of %d bytes are answered as well', async (size) => {
  const { send, socket, heard } = await openSocket(server.url)
  socket.setNoDelay(true)
  const chunked =
    'POST /svc/names/origins HTTP/1.1\r\nHost: x\r\nX-Request-Id: chunked\r\nTransfer-Encoding: chunked\r\n\r\n'
  const body = JSON.stringify([note.outpoint(0)])
  const bytes =
    written({ path: '/health/live' }, 'first') +
    `${chunked}${body.length.toString(16)}\r\n${body}\r\n0\r\nX: y\r\n\r\n` +
    written(post('/svc/gateway/preview', '\r\n\r\n<p>\r\n\r\n'), 'third') +
    `\r\n${written({ path: '/svc/names/origin/a' }, 'fourth')}`
  for (let at = 0; at < bytes.length; at += size) {
    send(bytes.slice(at, at + size))
    if (size < 64) await new Promise((resolve) => setImmediate(resolve))
  }
  await until(() => idsOf(heard()).length === 4)
  expect(idsOf(heard())).toEqual(['first', 'chunked', 'third', 'fourth'])
  expect(heard()).toContain(`{"${note.outpoint(0)}":`)
  expect(heard()).toContain('\r\n\r\n\r\n\r\n<p>\r\n\r\n')
})

test('a server stops while clients have sent much and read nothing', async () => {
  const stopping = await servers.start({ ...treeOf(chain.deployment) })
  await stopping.take(beefOf(film), ['tm_ordinals'])
  const sent = written({ path: `/content/${film.outpoint(0)}` }, 'x').repeat(63)
  const clients = await Promise.all(Array.from({ length: 4 }, () => openSocket(stopping.url)))
  for (const { socket, send } of clients) {
    socket.pause()
    send(sent)
  }
  await until(() => clients.every(({ socket }) => socket.bytesRead > 0))
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  let isStopped = false
  const stopped = stopping.stop().finally(() => {
    isStopped = true
  })
  // The time that requests in flight may take passes.
  while (!isStopped) await vi.advanceTimersByTimeAsync(1000)
  await stopped
  for (const { socket } of clients) socket.destroy()
})

test('over the limit for all, the connection that holds the most ends, and others are answered', async () => {
  const small = await servers.start(
    { ...treeOf(chain.deployment), TRUST_PROXY: '1' },
    { limits: { maxClientUploadBytes: MiB + 100_000 } },
  )
  await small.take(beefOf(film), ['tm_ordinals'])
  await small.take(beefOf(note), ['tm_ordinals'])
  const deaf = await Promise.all(Array.from({ length: 12 }, () => openSocket(small.url)))
  let ended = 0
  for (const { socket, send } of deaf) {
    socket.pause()
    socket.once('close', () => ended++)
    send(written({ path: `/content/${film.outpoint(0)}` }, 'x'))
  }
  // Each keeps 256 KiB of the store in memory.
  await until(() => ended >= 8)
  const { send, heard } = await openSocket(small.url)
  send(written({ path: `/content/${note.outpoint(0)}` }, 'read'))
  await until(() => heard().endsWith('note'))
  await loopTurns()
  expect(ended).toBe(8)
  for (const { socket } of deaf) socket.destroy()
})
