import { connect } from 'node:net'
import { bytesOf, type FuzzRequest, isRaw } from './request.js'

/** What came back for a request. */
export interface InFlightRequest {
  received: Buffer
  /**
   * How the connection ended: by the server, by an error, or not at all, for as long as somebody waited; and by us, where
   * raw bytes were no whole request and the server waited for more of it.
   */
  end: 'closed' | 'reset' | 'refused' | 'hung' | 'given up'
  milliseconds: number
}

/** How long a server may say nothing to raw bytes that may be half a request, in milliseconds. */
const RAW_IDLE = 250

/** Sends a request down a connection of its own, and waits for the server to end that, but `patience` milliseconds at most. */
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
      // Not ended with it: a server may drop what somebody asked who has hung up.
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
