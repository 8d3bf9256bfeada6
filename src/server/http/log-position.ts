import { setTimeout as sleep } from 'node:timers/promises'
import type { RequestHandler } from 'express'
import onHeaders from 'on-headers'
import { monotonic } from '../../../backend/src/protocol/monotonic.js'

/** The log position that an answer is based on: one gateway returns it for a write, and a read sends it to another. */
export const LOG_POSITION = 'X-Log-Position'

/** How long a read waits for its position, and how often it checks, in milliseconds. */
const PATIENCE = 2000
const INTERVAL = 20

/**
 * Delays a read until this gateway knows the log up to the position in the request's header, within limits: so clients of several
 * gateways behind one balancer read what they have written. The answer to a write, or to a request with the header, has the current
 * position.
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
