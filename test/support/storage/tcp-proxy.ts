import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** Stands before a server, and lets nobody through for a while. */
export interface TcpProxy {
  port: number
  /** Breaks every connection, and each that is made from now on. */
  cut(): void
  /** Hands nothing on that comes by the connections that there are, nor, if asked, by those that are made from now on. */
  stall(options?: { newOnes: boolean }): void
  /** Lets connections through again. */
  mend(): void
  stop(): Promise<void>
}

/** Starts one on 127.0.0.1, before a port there. */
export async function startTcpProxy(behind: number): Promise<TcpProxy> {
  /** Each with the one that has what comes by it. */
  const sockets = new Map<Socket, Socket>()
  let isCut = false
  let isStalled = false
  const server = createServer((socket) => {
    if (isCut) {
      socket.resetAndDestroy()
      return
    }
    const other = connect(behind, '127.0.0.1')
    for (const [one, two] of [
      [socket, other],
      [other, socket],
    ] as const) {
      sockets.set(one, two)
      if (!isStalled) one.pipe(two)
      // Where one side ends, however, so does the other.
      one.on('error', () => two.destroy())
      one.on('close', () => {
        sockets.delete(one)
        two.destroy()
      })
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const breakAll = (): void => {
    for (const socket of sockets.keys()) socket.resetAndDestroy()
  }
  return {
    port: (server.address() as AddressInfo).port,
    cut() {
      isCut = true
      breakAll()
    },
    stall({ newOnes } = { newOnes: false }) {
      isStalled = newOnes
      for (const [one, two] of sockets) one.unpipe(two)
    },
    mend() {
      isCut = false
      isStalled = false
      for (const [one, two] of sockets) one.unpipe(two).pipe(two)
    },
    async stop() {
      breakAll()
      server.close()
      await once(server, 'close')
    },
  }
}
