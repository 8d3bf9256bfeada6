import { Semaphore } from 'async-mutex'
import type { Request, RequestHandler } from 'express'
import onHeaders from 'on-headers'

/**
 * Lets so many requests of one client be worked on at a time; the others of that client wait, first come first served. So
 * whoever asks for much on many connections waits for itself: others stand in line behind so many of its requests, and not
 * behind all of them.
 *
 * A request is worked on until the head of its answer is out. What follows comes as its reader takes it.
 */
export function clientConcurrency(most: number, clientOf: (request: Request) => string): RequestHandler {
  const clients = new Map<string, Semaphore>()
  return function waitForTurn(request, response, next) {
    const client = clientOf(request)
    const turns = clients.get(client) ?? new Semaphore(most)
    clients.set(client, turns)
    void turns.acquire().then(([, release]) => {
      const leave = (): void => {
        release()
        if (turns.getValue() === most && clients.get(client) === turns) clients.delete(client)
      }
      if (response.destroyed) {
        leave()
        return
      }
      onHeaders(response, leave)
      response.once('close', leave)
      next()
    })
  }
}
