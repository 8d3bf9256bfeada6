import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** Stands before a server, and lets nobody through for a while. */
export interface TcpProxy {
  port: number
  /** Breaks every connection, and each that is made from now on. */
  cut(): void
  /** Lets connections through again. */
  mend(): void
  stop(): Promise<void>
}

/** Starts one on 127.0.0.1, before a port there. */
export async function startTcpProxy(behind: number): Promise<TcpProxy> {
  const sockets = new Set<Socket>()
  let isCut = false
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
      sockets.add(one)
      one.pipe(two)
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
    for (const socket of sockets) socket.resetAndDestroy()
  }
  return {
    port: (server.address() as AddressInfo).port,
    cut() {
      isCut = true
      breakAll()
    },
    mend() {
      isCut = false
    },
    async stop() {
      breakAll()
      server.close()
      await once(server, 'close')
    },
  }
}
