import { yieldToEventLoop } from '../../../backend/src/graph/yield-to-event-loop.js'
import { NotReadyError } from '../../gateway/http/errors.js'
import type { Limits } from '../config/limits.js'
import { RateLimitedError } from '../http/gates.js'
import type { Submit } from './submit.js'

/** When whoever is turned away may come again, in seconds. */
const RETRY = { 'Retry-After': '5' }

/** As many submissions wait as may. It is this host that is busy, not the client that asks too much: so 503, and not 429. */
class BusyError extends NotReadyError {
  override readonly headers = RETRY

  constructor(waiting: number) {
    super(`${waiting} submissions are already waiting; try again`)
  }
}

/** As many of one client wait as may. */
class ClientBusyError extends RateLimitedError {
  override readonly headers = RETRY

  constructor(waiting: number) {
    super(`${waiting} of your submissions are already waiting; send more once they are answered`)
  }
}

/**
 * Bounds how many submissions are under way and wait for their turn, all of them and those of one client, and how many
 * bytes of memory their bodies hold. One alone is always taken, however large.
 *
 * Each begins in a turn of the event loop of its own: reading a BEEF is one piece of work, and many may come in at once.
 */
export function boundedSubmit(
  submit: Submit,
  limits: Pick<Limits, 'maxSubmissions' | 'maxClientSubmissions' | 'maxSubmissionBytes'>,
): Submit {
  const { maxSubmissions, maxClientSubmissions, maxSubmissionBytes } = limits
  const ofClients = new Map<string, number>()
  let count = 0
  let bytes = 0
  return async (submitted) => {
    const { beef, client } = submitted
    const { length } = beef
    const ofClient = client === undefined ? 0 : (ofClients.get(client) ?? 0)
    if (ofClient >= maxClientSubmissions) throw new ClientBusyError(ofClient)
    if (count >= maxSubmissions || (count > 0 && bytes + length > maxSubmissionBytes))
      throw new BusyError(count)
    count++
    bytes += length
    if (client !== undefined) ofClients.set(client, ofClient + 1)
    try {
      await yieldToEventLoop('submitting')
      return await submit({ ...submitted, ahead: ofClient })
    } finally {
      count--
      bytes -= length
      if (client !== undefined) leave(ofClients, client)
    }
  }
}

function leave(ofClients: Map<string, number>, client: string): void {
  const left = (ofClients.get(client) ?? 1) - 1
  if (left > 0) ofClients.set(client, left)
  else ofClients.delete(client)
}
