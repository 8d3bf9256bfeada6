import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'

/** A request that was read to its end. */
export interface HostileRequest {
  method: string
  path: string
  headers: IncomingMessage['headers']
  body: Buffer
}

/** What a server does with a request: it answers, or whatever else it does to the connection. */
export type Handler = (request: HostileRequest, response: ServerResponse) => void | Promise<void>

/** How much of a request is read. What a client sends is bounded by what it has. */
const MAX_REQUEST_BYTES = 256 * 1024 * 1024

/** A server on 127.0.0.1 that does as its handler likes, and counts what clients let it do. */
export class HostileServer {
  /** The method and path of each request, in order. */
  readonly requests: string[] = []
  connections = 0
  private readonly sockets = new Set<Socket>()
  private readonly server: Server
  private closedBytes = 0

  private constructor(handler: Handler) {
    this.server = createServer({ maxHeaderSize: 1024 * 1024 }, (request, response) => {
      // A client that gives up breaks the connection, which is what it should do.
      response.on('error', () => undefined)
      this.handle(handler, request, response).catch(() => response.destroy())
    })
    this.server.on('connection', (socket) => {
      this.connections++
      this.sockets.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => {
        this.closedBytes += socket.bytesWritten
        this.sockets.delete(socket)
      })
    })
  }

  static async open(handler: Handler): Promise<HostileServer> {
    const opened = new HostileServer(handler)
    await new Promise<void>((ready) => opened.server.listen(0, '127.0.0.1', ready))
    return opened
  }

  /** Without a slash at the end. */
  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`
  }

  /** What clients have let it send, in bytes, give or take what lies in buffers of the machine. */
  get sentBytes(): number {
    let open = 0
    for (const socket of this.sockets) open += socket.bytesWritten
    return this.closedBytes + open
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy()
    await new Promise((closed) => this.server.close(closed))
  }

  private async handle(handler: Handler, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = 'GET', url: path = '', headers } = request
    this.requests.push(`${method} ${path}`)
    const chunks: Buffer[] = []
    let length = 0
    for await (const chunk of request as AsyncIterable<Buffer>) {
      length += chunk.length
      if (length > MAX_REQUEST_BYTES) throw new Error('the request has no end')
      chunks.push(chunk)
    }
    await handler({ method, path, headers, body: Buffer.concat(chunks) }, response)
  }
}

/** Answers with JSON, or with bytes as they are. */
export function answer(response: ServerResponse, body: unknown, { status = 200 } = {}): void {
  const isBytes = body instanceof Uint8Array
  response.writeHead(status, { 'Content-Type': isBytes ? 'application/octet-stream' : 'application/json' })
  response.end(isBytes ? body : JSON.stringify(body))
}
