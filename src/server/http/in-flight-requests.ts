import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

/** A request, and the response that it has or will have. */
export interface InFlightRequest {
  request: IncomingMessage
  response: ServerResponse
}

/** Which requests are under way on which connection; there may be several where a client does not wait. */
export class InFlightRequests {
  private readonly bySocket = new WeakMap<Duplex, InFlightRequest[]>()

  /**
   * Until the response is over, or its connection. Those that are over go when the next comes, for nearly nothing.
   *
   * @returns How many there are on the connection now.
   */
  add(request: IncomingMessage, response: ServerResponse): number {
    const { socket } = request
    const exchanges = this.bySocket.get(socket) ?? []
    this.bySocket.set(socket, exchanges)
    while (exchanges[0]?.response.closed) exchanges.shift()
    return exchanges.push({ request, response })
  }

  /** In the order in which they came, which is that of their answers. */
  on(socket: Duplex): InFlightRequest[] {
    return this.bySocket.get(socket)?.filter(({ response }) => !response.closed) ?? []
  }

  /** Whether the next move on a connection is ours: a request is here whole, and nothing of its answer waits to be read. */
  isWorkedOn(socket: Duplex): boolean {
    const [first] = this.on(socket)
    return first?.request.complete === true && socket.writableLength === 0
  }
}
