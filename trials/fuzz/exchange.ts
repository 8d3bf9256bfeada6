import { connect } from 'node:net'
import { bytesOf, type FuzzRequest, isRaw } from './request.js'

/** The result of a request. */
export interface InFlightRequest {
  received: Buffer
  /**
   * How the connection ended: by the server, by an error, or not at all while we waited; or by us, if raw bytes were no whole
   * request and the server waited for more.
   */
  end: 'closed' | 'reset' | 'refused' | 'hung' | 'given up'
  milliseconds: number
}

/** How long a server may be silent after raw bytes, which may be half a request, in milliseconds. */
const RAW_IDLE = 250

/** Sends a request on its own connection, and waits at most `patience` milliseconds for the server to end the connection. */
export async function exchange(
  url: string,
  request: FuzzRequest,
  { patience }: { patience: number },
): Promise<InFlightRequest> {
  const { hostname, port } = new URL(url)
  const start = performance.now()
  return await new Promise((resolve) => {
    const chunks: Buffer[] = []
    let end: InFlightRequest['end'] = 'closed'
    let isOpen = false
    const socket = connect({ host: hostname, port: Number(port) }, () => {
      isOpen = true
      // Our side stays open: a server may drop the request of a client that has hung up.
      socket.write(bytesOf(request))
    })
    const giveUp = setTimeout(() => {
      end = 'hung'
      socket.destroy()
    }, patience)
    let idle: NodeJS.Timeout | undefined
    const hangUp = (): void => {
      idle = setTimeout(() => {
        end = 'given up'
        socket.end()
      }, RAW_IDLE)
    }
    if (isRaw(request)) hangUp()
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      idle?.refresh()
    })
    socket.on('error', () => {
      end = isOpen ? 'reset' : 'refused'
    })
    socket.on('close', () => {
      clearTimeout(giveUp)
      clearTimeout(idle)
      resolve({ received: Buffer.concat(chunks), end, milliseconds: performance.now() - start })
    })
  })
}
