import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'

/** How long an idle connection is kept, in milliseconds: one that ends as a busy client sends is an error to that client. */
const KEPT = 300_000

/** A server that is none of ours. It may be closed more than once. */
export async function listening(listener: RequestListener): Promise<{ url: string; close(): Promise<void> }> {
  // A test that fails before it closes this one is not to keep the process up.
  const server = createServer({ keepAliveTimeout: KEPT }, listener).unref()
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
  let closed: Promise<void> | undefined
  const close = async (): Promise<void> => {
    server.closeAllConnections()
    await new Promise((done) => server.close(done))
  }
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      closed ??= close()
      return closed
    },
  }
}

/** Such a server for as long as the test runs; it may be closed before. */
export async function serving(listener: RequestListener): ReturnType<typeof listening> {
  const served = await listening(listener)
  onTestFinished(served.close)
  return served
}

/**
 * How long a connection is quiet when there is no more to come: in turns of the loop, each of which asks the network, as what
 * listens is in this process. After a stall of it, what has come meanwhile is read before the next turn.
 */
const QUIET = 40
/** How long a turn takes at least, in milliseconds. */
const TURN = 5

/** Sends bytes as they are to where a server listens, and reads what comes back, as latin1, until the connection ends. */
export async function sendRaw(url: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(url)
  return await new Promise((resolve, reject) => {
    let text = ''
    // Ended only when an answer has come: a server may drop a request of somebody who has hung up.
    let turns: NodeJS.Timeout | undefined
    let quiet = 0
    const socket = connect({ host: hostname, port: Number(port) }, () => socket.write(bytes, 'latin1'))
    socket.setEncoding('latin1')
    socket.on('data', (chunk: string) => {
      text += chunk
      quiet = 0
      turns ??= setInterval(() => {
        if (++quiet === QUIET) socket.end()
      }, TURN)
    })
    socket.on('close', () => clearInterval(turns))
    socket.on('end', () => resolve(text))
    socket.on('error', reject)
  })
}

/** A connection on which a test sends what it likes, and hears what comes back, as latin1. */
export interface OpenSocket {
  socket: Socket
  send(bytes: string): void
  heard(): string
  /** Resolves when the other side has ended the connection, however. */
  ended: Promise<void>
}

/**
 * Connects to where a server listens. The socket is destroyed when the test is done.
 *
 * @param localAddress The address to connect from, as `127.0.0.2`.
 */
export async function openSocket(url: string, localAddress?: string): Promise<OpenSocket> {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port), ...(localAddress && { localAddress }) })
  onTestFinished(() => void socket.destroy())
  let text = ''
  socket.setEncoding('latin1')
  socket.on('data', (chunk: string) => {
    text += chunk
  })
  const ended = new Promise<void>((resolve) => {
    socket.once('end', resolve)
    // A connection that is reset has ended, too; it may hear of it more than once.
    socket.on('error', () => resolve())
    socket.once('close', () => resolve())
  })
  await once(socket, 'connect')
  return { socket, send: (bytes) => void socket.write(bytes, 'latin1'), heard: () => text, ended }
}
