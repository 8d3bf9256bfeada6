import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

/** A request, and the response that it has or will have. */
export interface Exchange {
  request: IncomingMessage
  response: ServerResponse
}

/** Which requests are under way on which connection; there may be several where a client does not wait. */
export class Exchanges {
  private readonly bySocket = new WeakMap<Duplex, Set<Exchange>>()

  /** Until the response is over, or its connection. */
  add(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request
    const exchange = { request, response }
    const open = this.bySocket.get(socket)
    if (open === undefined) this.bySocket.set(socket, new Set([exchange]))
    else open.add(exchange)
    response.once('close', () => this.bySocket.get(socket)?.delete(exchange))
  }

  /** In the order in which they came, which is that of their answers. */
  on(socket: Duplex): Exchange[] {
    return [...(this.bySocket.get(socket) ?? [])]
  }

  /** Whether the next move on a connection is ours: a request is here whole, and nothing of its answer waits to be read. */
  isWorkedOn(socket: Duplex): boolean {
    const [first] = this.on(socket)
    return first?.request.complete === true && socket.writableLength === 0
  }
}
