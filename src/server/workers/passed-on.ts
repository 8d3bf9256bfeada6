import { randomBytes, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import {
  Agent,
  type ClientRequestArgs,
  type IncomingMessage,
  type Server,
  type ServerResponse,
  request as sendRequest,
} from 'node:http'
import { type AddressInfo, connect, type NetConnectOpts, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RequestHandler } from 'express'
import { BadRequestError, NotReadyError } from '../../gateway/http/errors.js'
import { discardBody } from '../../gateway/http/request-body.js'
import type { Limits } from '../config/limits.js'
import type { App } from '../http/hot-path.js'

/** Where the process that writes takes requests from its readers. */
export interface WriterAddress {
  /** A Unix domain socket, or a port of 127.0.0.1. */
  place: { socketPath: string } | { host: string; port: number }
  /** Proves that a request comes from a reader. */
  secret: string
}

/**
 * `<secret> <address of the client>`: what a reader adds to a request that it passes on. It removes what a client sends under
 * this name, and the writer drops a request without the secret.
 */
const HEADER = 'x-minetree-passed-on'

/** Of one connection, and not of the request (RFC 9110 7.6.1). Node has answered `Expect`. */
const OF_CONNECTION = new Set([
  'connection',
  'expect',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** Of a request, a reader writes these itself as well. */
const REPLACED = new Set([...OF_CONNECTION, HEADER, 'host', 'x-request-id'])

/** How long the writer keeps an idle connection of a reader, in milliseconds. Node tells the reader. */
const KEEP_ALIVE = 30_000

/**
 * How long a reader waits before it tries again to connect while too many connections wait to be accepted, and how often it
 * tries, in milliseconds. On a Unix domain socket, the system refuses further ones.
 */
const BUSY = 10
const MOST_TRIES = 1000
/** How many connections may wait to be accepted, as far as the system allows. */
const BACKLOG = 4096

/** The process that writes, and answers these requests, is gone or going. */
class WriterGoneError extends NotReadyError {
  override readonly headers = { 'Retry-After': '1' }

  constructor() {
    super('the process that answers this is being restarted; try again')
  }
}

export function newSecret(): string {
  return randomBytes(32).toString('hex')
}

const passed = new WeakSet<IncomingMessage>()

/** Whether a request was passed on: the writer counts and logs it. */
export function isPassedOn(request: IncomingMessage): boolean {
  return passed.has(request)
}

/** Connects as soon as the process that writes has time for it. */
class PatientAgent extends Agent {
  override createConnection(
    options: ClientRequestArgs,
    connected: (error: Error | null, socket: Socket) => void = () => {},
  ): undefined {
    let tries = 0
    const tryOnce = (): void => {
      const socket = connect(options as NetConnectOpts)
      const fail = (error: NodeJS.ErrnoException): void => {
        if (error.code === 'EAGAIN' && ++tries < MOST_TRIES) setTimeout(tryOnce, BUSY)
        else connected(error, socket)
      }
      socket.once('error', fail)
      socket.once('connect', () => {
        socket.off('error', fail)
        connected(null, socket)
      })
    }
    tryOnce()
  }
}

/**
 * Passes requests on to the process that writes: bodies stream both ways, no faster than the other side takes them, and what
 * ends on one side ends on the other. The writer sees the request as the client sent it, its address included.
 *
 * Those of one connection of a client are passed on one after another, as they are answered: each takes a connection here.
 */
export function passOn({ place, secret }: WriterAddress): RequestHandler {
  const agent = new PatientAgent({ keepAlive: true })
  /** The last response on a connection whose request is passed on. A client may send many without waiting for any. */
  const last = new WeakMap<Socket, ServerResponse>()
  return (request, response, next) => {
    const { method, originalUrl: path, socket } = request
    const { 'content-length': length, 'transfer-encoding': coding } = request.headers
    const hasBody = length !== undefined || coding !== undefined
    // Ours come first: Node drops what exceeds its number of headers.
    const headers = {
      [HEADER]: `${secret} ${socket.remoteAddress ?? ''}`,
      'X-Request-Id': String(response.getHeader('X-Request-Id')),
      ...requestHeaders(request),
    }
    const send = (): void => {
      const asked = sendRequest({ ...place, agent, method, path, headers, setHost: false })
      // Otherwise Node would announce an empty body where there is none.
      asked.useChunkedEncodingByDefault = coding !== undefined
      response.once('close', () => {
        if (!response.writableFinished) asked.destroy()
      })
      asked.once('response', (answer) => sendAnswer(answer, response))
      // There may be another one as the connection ends.
      asked.on('error', () => {})
      asked.once('error', (error: NodeJS.ErrnoException) => {
        if (response.headersSent || response.destroyed) return
        // The writer closed an idle connection just now.
        if (asked.reusedSocket && error.code === 'ECONNRESET' && !hasBody) send()
        else {
          passed.delete(request)
          next(new WriterGoneError())
        }
      })
      if (!hasBody) {
        asked.end()
        return
      }
      // The writer may refuse a body before any of it has come.
      asked.flushHeaders()
      request.pipe(asked)
      asked.once('response', (answer) => {
        answer.once('end', () => {
          // Node sends no more of a body that is longer than its buffers.
          if (!asked.writableFinished) asked.destroy()
        })
      })
      asked.once('close', () => discardBody(request))
    }
    const begin = (): void => {
      if (socket.destroyed) return
      try {
        send()
      } catch {
        passed.delete(request)
        next(new BadRequestError('BAD_BODY', 'the request is malformed'))
      }
    }
    passed.add(request)
    const previous = last.get(socket)
    last.set(socket, response)
    if (previous === undefined || previous.closed) begin()
    else previous.once('close', begin)
  }
}

/** How long what the writer says of the chain is good for, and how long a page waits for it, in milliseconds. */
const CHAIN_AGE = 1000
const CHAIN_PATIENCE = 1000
/** The longest answer that is read, in characters. */
const MAX_HEALTH = 256 * 1024

/** How far the writer has come; both fields are missing if it does not say so in time. */
export function writersChain(
  writer: WriterAddress,
): () => Promise<{ height?: number | undefined; lag?: number | undefined }> {
  const agent = new PatientAgent({ keepAlive: true, maxSockets: 1 })
  let asked: { at: number; answer: Promise<{ height?: number; lag?: number }> } | undefined
  return () => {
    if (asked === undefined || Date.now() - asked.at > CHAIN_AGE)
      asked = { at: Date.now(), answer: askChain(writer, agent).catch(() => ({})) }
    return asked.answer
  }
}

async function askChain(
  { place, secret }: WriterAddress,
  agent: Agent,
): Promise<{ height?: number; lag?: number }> {
  const signal = AbortSignal.timeout(CHAIN_PATIENCE)
  const headers = { [HEADER]: `${secret} 127.0.0.1`, Host: 'localhost' }
  const question = sendRequest({ ...place, agent, path: '/health', headers, setHost: false, signal })
  question.end()
  const [answer] = (await once(question, 'response', { signal })) as [IncomingMessage]
  let text = ''
  for await (const chunk of answer.setEncoding('utf8')) {
    text += chunk
    if (text.length > MAX_HEALTH) throw new Error('the status of the writer is too long')
  }
  const { height, lag } = JSON.parse(text) as { height?: number; lag?: number }
  return { ...(height !== undefined && { height }), ...(lag !== undefined && { lag }) }
}

function sendAnswer(answer: IncomingMessage, response: ServerResponse): void {
  // It lets the connection of the client go as well.
  if (answer.headers.connection === 'close') response.shouldKeepAlive = false
  response.writeHead(answer.statusCode ?? 502, passedHeaders(answer.rawHeaders))
  answer.once('error', () => response.destroy())
  answer.pipe(response)
}

/** The headers of a request, as they are passed on. */
function requestHeaders({ rawHeaders, headers }: IncomingMessage): Record<string, string | string[]> {
  return {
    // Node takes the first, and HTTP/1.0 needs none.
    Host: headers.host ?? '',
    ...passedHeaders(rawHeaders, REPLACED),
    ...(headers['transfer-encoding'] !== undefined && { 'Transfer-Encoding': 'chunked' }),
  }
}

/** Headers as they were written, each with all of its values, but those that are left out. */
function passedHeaders(rawHeaders: string[], leftOut = OF_CONNECTION): Record<string, string[]> {
  const all = new Map<string, [name: string, values: string[]]>()
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const [name = '', value = ''] = rawHeaders.slice(at, at + 2)
    const key = name.toLowerCase()
    const [, values] = all.get(key) ?? []
    if (values !== undefined) values.push(value)
    else if (!leftOut.has(key)) all.set(key, [name, [value]])
  }
  return Object.fromEntries(all.values())
}

/** An app as the writer runs it: requests come from readers, and look as they did there. Others end with their connection. */
export function receivePassedOn(app: App, secret: string): App {
  const expected = Buffer.from(secret)
  const received = (...[request, response]: Parameters<App>): void => {
    const [shown, address] = String(request.headers[HEADER]).split(' ')
    const given = Buffer.from(shown ?? '')
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
      request.socket.destroy()
      return
    }
    delete request.headers[HEADER]
    // A reader sends the next request on this connection when this one is answered.
    Object.defineProperty(request.socket, 'remoteAddress', { value: address, configurable: true })
    app(request, response)
  }
  return Object.assign(received, { express: app.express })
}

/** The limits of the server that the readers connect to: they keep to those of clients. */
export function writerLimits(limits: Limits): Limits {
  return {
    ...limits,
    // A reader writes a space after each colon, and its own headers.
    maxHeaderBytes: 2 * limits.maxHeaderBytes + 1024,
    maxConnections: Number.POSITIVE_INFINITY,
    maxClientConnections: 0,
    requestTimeout: 0,
    // Later than the reader, which knows why, and which closes idle connections first.
    stallTimeout: 2 * Math.max(limits.stallTimeout, KEEP_ALIVE),
    keepAliveTimeout: KEEP_ALIVE,
  }
}

/** Listens where only this user can connect: on a socket in a folder of its own, or on 127.0.0.1 if there can be none. */
export async function listenForReaders(
  server: Server,
): Promise<Pick<WriterAddress, 'place'> & { remove(): Promise<void> }> {
  // A reader has dropped what exceeds Node's number of headers.
  server.maxHeadersCount = 0
  const folder = await mkdtemp(join(tmpdir(), 'minetree-')).catch(() => undefined)
  const remove = async (): Promise<void> => {
    if (folder !== undefined) await rm(folder, { recursive: true, force: true })
  }
  if (folder !== undefined) {
    const socketPath = join(folder, 'writer')
    try {
      server.listen({ path: socketPath, backlog: BACKLOG })
      await once(server, 'listening')
      return { place: { socketPath }, remove }
    } catch {
      // The path is too long, or the file system has no sockets.
      await remove()
    }
  }
  server.listen({ port: 0, host: '127.0.0.1', backlog: BACKLOG })
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return { place: { host: '127.0.0.1', port }, remove }
}
