import { setTimeout as sleep } from 'node:timers/promises'
import type { RequestHandler } from 'express'
import onHeaders from 'on-headers'
import { monotonic } from '../../../backend/src/protocol/monotonic.js'

/** How far the log has come that an answer follows from: one gateway gives it for a write, and another one gets it with a read. */
export const LOG_POSITION = 'X-Log-Position'

/** How long a read waits for what it asks for, and how often it looks, in milliseconds. */
const PATIENCE = 2000
const INTERVAL = 20

/**
 * Has a read wait until this gateway knows as much of the log as the header of the request says, though not for long: clients of
 * several gateways behind one balancer then read what they have written. The answer to a write, or to a request with the header, has the position.
 *
 * @param position How far the index has come.
 */
export function logPosition(position: () => number): RequestHandler {
  const until = async (wanted: number): Promise<void> => {
    for (const end = monotonic() + PATIENCE; position() < wanted && monotonic() < end; ) await sleep(INTERVAL)
  }
  return (request, response, next) => {
    const sent = request.headers[LOG_POSITION.toLowerCase()]
    if (request.method !== 'POST' && sent === undefined) {
      next()
      return
    }
    onHeaders(response, () => {
      response.setHeader(LOG_POSITION, String(position()))
    })
    const wanted = Number(sent)
    if (wanted > position()) void until(wanted).then(() => next(), next)
    else next()
  }
}
