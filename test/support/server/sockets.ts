import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** A connection on which a test sends what it likes, and hears what comes back, as latin1. */
export interface OpenSocket {
  socket: Socket
  send(bytes: string): void
  heard(): string
  /** Resolves when the other side has ended the connection, however. */
  ended: Promise<void>
}

/** Connects to where a server listens; every socket is destroyed when the tests of the file are done. */
export function useSockets(): (url: string) => Promise<OpenSocket> {
  const sockets: Socket[] = []
  afterAll(() => {
    for (const socket of sockets) socket.destroy()
  })
  return async (url) => {
    const { hostname, port } = new URL(url)
    const socket = connect({ host: hostname, port: Number(port) })
    sockets.push(socket)
    let text = ''
    socket.setEncoding('latin1')
    socket.on('data', (piece: string) => {
      text += piece
    })
    const ended = new Promise<void>((resolve) => {
      socket.once('end', resolve)
      // A connection that is reset has ended, too; it may be told of it more than once.
      socket.on('error', () => resolve())
      socket.once('close', () => resolve())
    })
    await once(socket, 'connect')
    return { socket, send: (bytes) => void socket.write(bytes, 'latin1'), heard: () => text, ended }
  }
}
