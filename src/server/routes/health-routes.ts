import { Router } from 'express'
import { NotReadyError } from '../../gateway/http/errors.js'
import type { Readiness } from '../http/readiness.js'
import type { IndexStatus } from '../store/index-maintenance.js'

/**
 * `/health/live`: the process answers. `/health/ready`: the store does too, and no part of the host says that it is not
 * ready. `/health`: both in one, why not, how far the index is, and what the topics have refused since the start.
 */
export function healthRoutes({
  ping,
  readiness,
  index,
  refused,
}: {
  ping: () => Promise<void>
  readiness: Readiness
  index: () => IndexStatus
  refused: () => Record<string, Record<string, number>>
}): Router {
  let pinging: Promise<void> | undefined
  const notReady = async (): Promise<Record<string, string>> => {
    try {
      // Calls that arrive mid-query share its answer: nobody is limited here, and the connections to the store are few.
      pinging ??= ping().finally(() => {
        pinging = undefined
      })
      await pinging
    } catch {
      // What the store said is in the log of whatever needed it; here it is a yes or a no.
      return { store: 'the store does not respond' }
    }
    return readiness.reasons()
  }
  return Router()
    .get('/health/live', (_request, response) => {
      response.set('Cache-Control', 'no-store').json({ status: 'ok' })
    })
    .get('/health/ready', async (_request, response) => {
      const [reason] = Object.values(await notReady())
      if (reason !== undefined) throw new NotReadyError(reason)
      response.set('Cache-Control', 'no-store').json({ status: 'ok' })
    })
    .get('/health', async (_request, response) => {
      const reasons = await notReady()
      const ready = Object.keys(reasons).length === 0
      response
        .set('Cache-Control', 'no-store')
        .status(ready ? 200 : 503)
        .json({
          status: ready ? 'ok' : 'error',
          live: true,
          ready,
          reasons,
          index: index(),
          refused: refused(),
        })
    })
}
