import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { pipeline, Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'

/** What a server can do to readers of its answer, whatever the request. */
export type BodyDeed = (response: ServerResponse, about: { internal: string }) => void

const MiB = 1024 * 1024
const JSON_TYPE = { 'Content-Type': 'application/json' }

/** Sends chunks for as long as somebody reads them. */
function pump(target: ServerResponse | Socket, next: (index: number) => Buffer | string): void {
  let index = 0
  const more = (): void => {
    while (!target.destroyed) if (!target.write(next(index++))) return void target.once('drain', more)
  }
  more()
}

/** The connection of a response whose head was not sent: bytes that no HTTP library would write can be sent on it. */
function bare(response: ServerResponse): Socket {
  const { socket } = response
  if (socket === null) throw new Error('the client is gone')
  return socket
}

/** Sends a body that is made once, a chunk at a time: what nobody reads is not sent. */
function whole(body: () => Buffer, { status = 200 } = {}): BodyDeed {
  let made: Buffer | undefined
  return (response) => {
    made ??= body()
    sendWhole(response, made, { status })
  }
}

/** Sends a body of JSON as {@link sendInChunks} does. */
export function sendWhole(response: ServerResponse, body: Buffer, { status = 200 } = {}): void {
  response.writeHead(status, { ...JSON_TYPE, 'Content-Length': body.length })
  sendInChunks(response, body)
}

/** Sends a body in chunks, each when the one before it was taken. */
export function sendInChunks(response: ServerResponse, body: Uint8Array): void {
  const chunks = function* (): Generator<Uint8Array> {
    for (let at = 0; at < body.length; at += CHUNK) yield body.subarray(at, at + CHUNK)
  }
  pipeline(Readable.from(chunks()), response, () => undefined)
}

const CHUNK = 64 * 1024

/** A gzip member that inflates to 16 MiB of blanks. Any number of them in a row is one gzip body. */
let blanks: Buffer | undefined
const blankMember = (): Buffer => {
  blanks ??= gzipSync(Buffer.alloc(16 * MiB, ' '))
  return blanks
}

/** What servers can do to any client, by name. */
export const BODY_DEEDS = {
  'endless body': (response) => {
    response.writeHead(200, JSON_TYPE)
    response.write('["')
    const chunk = Buffer.alloc(64 * 1024, 'a')
    pump(response, () => chunk)
  },
  'gzip bomb': (response) => {
    response.writeHead(200, { ...JSON_TYPE, 'Content-Encoding': 'gzip' })
    pump(response, blankMember)
  },
  'gzip in gzip': (response) => {
    response.writeHead(200, { ...JSON_TYPE, 'Content-Encoding': 'gzip, gzip' })
    // A quarter of a GiB in each chunk of a few hundred bytes.
    const chunk = gzipSync(Buffer.concat(Array.from({ length: 16 }, blankMember)))
    pump(response, () => chunk)
  },
  'slow drip': (response) => {
    response.writeHead(200, JSON_TYPE)
    const drip = setInterval(() => response.write(' '), 1000)
    response.on('close', () => clearInterval(drip))
  },
  hang: () => undefined,
  'redirect to an internal host': (response, { internal }) => {
    response.writeHead(307, { Location: `${internal}/admin/delete-everything` }).end()
  },
  'redirect to itself': (response) => {
    response.writeHead(302, { Location: response.req.url }).end()
  },
  'huge headers': (response) => {
    const socket = bare(response)
    socket.write('HTTP/1.1 200 OK\r\n')
    const line = `${'a'.repeat(8000)}\r\n`
    pump(socket, (index) => `X-${index}: ${line}`)
  },
  'endless early hints': (response) => {
    pump(bare(response), () => 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'.repeat(200))
  },
  '30 MB error text': whole(
    () => Buffer.from(JSON.stringify({ error: 'e'.repeat(30_000_000), code: 'C'.repeat(1000) })),
    { status: 500 },
  ),
  'error that writes to the terminal': whole(
    () =>
      Buffer.from(JSON.stringify({ error: '\u001b[2J\u001b]0;owned\u0007\nminetree: paid\r\n', code: 'X' })),
    { status: 400 },
  ),
  garbage: whole(() => Buffer.from(Array.from({ length: 4096 }, (_, at) => (at * 197 + 13) & 0xff))),
  'no HTTP': (response) => {
    bare(response).end('SSH-2.0-OpenSSH_9.6\r\n')
  },
  'hang-up': (response) => {
    bare(response).destroy()
  },
  'cut in half': (response) => {
    response.writeHead(200, { ...JSON_TYPE, 'Content-Length': 1000 })
    response.write('{"half":', () => bare(response).destroy())
  },
  'one byte a chunk, without end': (response) => {
    const socket = bare(response)
    socket.write('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n')
    const chunk = Buffer.from('1\r\n \r\n'.repeat(2000))
    pump(socket, () => chunk)
  },
  'endless chunk extension': (response) => {
    const socket = bare(response)
    socket.write('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1;')
    const chunk = Buffer.alloc(64 * 1024, 'a')
    pump(socket, () => chunk)
  },
  '60 MiB of brackets': whole(() => Buffer.alloc(60 * MiB, '[')),
  '60 MiB of empty objects': whole(() => Buffer.from(`[${'{},'.repeat(20 * MiB - 1)}{}]`)),
} satisfies Record<string, BodyDeed>

export type BodyDeedName = keyof typeof BODY_DEEDS

/** Those that keep a client waiting until its own patience ends. */
export const WAITING_DEEDS: readonly BodyDeedName[] = ['slow drip', 'hang']

/**
 * Those in which the bytes are none of the body: no reader can count them, and they end with the client's patience. Until then
 * they take all of a core.
 */
export const FRAMING_DEEDS: readonly BodyDeedName[] = [
  'endless early hints',
  'one byte a chunk, without end',
  'endless chunk extension',
]

/** One of each kind. */
export const SOME_DEEDS: readonly BodyDeedName[] = [
  'endless body',
  'gzip bomb',
  'slow drip',
  'redirect to an internal host',
  '60 MiB of empty objects',
  'hang-up',
]

/** Each deed, and whether it is left to the night. */
export function bodyDeeds(
  tested: 'all' | 'some' = 'all',
): { name: string; deed: BodyDeed; atNight: boolean }[] {
  return Object.entries<BodyDeed>(BODY_DEEDS).map(([name, deed]) => ({
    ...{ name, deed },
    atNight:
      FRAMING_DEEDS.includes(name as BodyDeedName) ||
      (tested === 'some' && !SOME_DEEDS.includes(name as BodyDeedName)),
  }))
}
