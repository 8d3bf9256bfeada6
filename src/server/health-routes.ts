import { Router } from 'express'
import { NotReadyError } from '../gateway/error-response.js'

/**
 * `/health/live`: the process answers. `/health/ready`: the store does too. `/health`: both in one, and what the topics
 * have refused since the start.
 */
export function healthRoutes({
  ping,
  refused,
}: {
  ping: () => Promise<void>
  refused: () => Record<string, Record<string, number>>
}): Router {
  const ready = async (): Promise<boolean> => {
    try {
      await ping()
      return true
    } catch {
      // What the store said is in the log of whatever needed it; here it is a yes or a no.
      return false
    }
  }
  return Router()
    .get('/health/live', (_request, response) => {
      response.set('Cache-Control', 'no-store').json({ status: 'ok' })
    })
    .get('/health/ready', async (_request, response) => {
      if (!(await ready())) throw new NotReadyError('the store does not answer')
      response.set('Cache-Control', 'no-store').json({ status: 'ok' })
    })
    .get('/health', async (_request, response) => {
      const store = await ready()
      response
        .set('Cache-Control', 'no-store')
        .status(store ? 200 : 503)
        .json({ status: store ? 'ok' : 'error', live: true, ready: store, refused: refused() })
    })
}
