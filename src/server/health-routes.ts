import { Router } from 'express'
import { NotReadyError } from '../gateway/error-response.js'
import { notReadyReason } from './readiness.js'
import type { IndexStatus } from './upkeep.js'

/**
 * `/health/live`: the process answers. `/health/ready`: the store and the chain tracker do too, and what is answered is
 * known to be all that was admitted. `/health`: both in one, how that is known, and what the topics have refused since the start.
 */
export function healthRoutes({
  ping,
  index,
  outage = () => undefined,
  refused,
}: {
  ping: () => Promise<void>
  index: () => IndexStatus
  /** Why no submission can be verified; undefined while they can be. */
  outage?: () => string | undefined
  refused: () => Record<string, Record<string, number>>
}): Router {
  const notReady = async (): Promise<string | undefined> => {
    try {
      await ping()
    } catch {
      // What the store said is in the log of whatever needed it; here it is a yes or a no.
      return 'the store does not answer'
    }
    return notReadyReason(index()) ?? outage()
  }
  return Router()
    .get('/health/live', (_request, response) => {
      response.set('Cache-Control', 'no-store').json({ status: 'ok' })
    })
    .get('/health/ready', async (_request, response) => {
      const reason = await notReady()
      if (reason !== undefined) throw new NotReadyError(reason)
      response.set('Cache-Control', 'no-store').json({ status: 'ok' })
    })
    .get('/health', async (_request, response) => {
      const ready = (await notReady()) === undefined
      response
        .set('Cache-Control', 'no-store')
        .status(ready ? 200 : 503)
        .json({ status: ready ? 'ok' : 'error', live: true, ready, index: index(), refused: refused() })
    })
}
