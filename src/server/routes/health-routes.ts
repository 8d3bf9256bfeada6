import { Router } from 'express'
import { z } from 'zod'
import { NotReadyError } from '../../gateway/http/errors.js'
import type { OperationGroup } from '../../gateway/http/operation.js'
import type { Readiness } from '../http/readiness.js'
import type { IndexStatus } from '../store/index-maintenance.js'

const okShape = z.strictObject({ status: z.literal('ok') })

function healthShape(ready: boolean) {
  return z.strictObject({
    status: z.literal(ready ? 'ok' : 'error'),
    live: z.literal(true),
    ready: z.literal(ready),
    reasons: z.record(z.string(), z.string()).describe('Why it is not ready, by the part of the host.'),
    index: z
      .strictObject({
        state: z.enum(['comparing', 'rebuilding', 'equal', 'unequal'] satisfies IndexStatus['state'][]),
        done: z.number().min(0).max(1).describe('How much of it is done.'),
      })
      .describe(
        'Whether the index is known to match the admitted set. While it is `rebuilding`, nothing else is answered.',
      ),
    refused: z
      .record(z.string(), z.record(z.string(), z.int().min(1)))
      .describe('How often each topic has refused something since the start, by topic and code.'),
  })
}

/**
 * `/health/live`: the process responds. `/health/ready`: so does the store, and every part of the host is ready. `/health`: both
 * in one, with reasons, the state of the index, and the refusals of the topics since the start.
 */
export function healthRoutes(host: {
  ping: () => Promise<void>
  readiness: Readiness
  index: () => IndexStatus
  refused: () => Record<string, Record<string, number>>
}): Router {
  const { ping, readiness, index, refused } = host
  let pinging: Promise<void> | undefined
  const notReady = async (): Promise<Record<string, string>> => {
    try {
      // Calls that arrive mid-query share its answer: there is no rate limit here, and the store has few connections.
      pinging ??= ping().finally(() => {
        pinging = undefined
      })
      await pinging
    } catch {
      // Other users of the store have logged the error; here only success matters.
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
      const status = ready ? 'ok' : 'error'
      response.set('Cache-Control', 'no-store').status(ready ? 200 : 503)
      response.json({ status, live: true, ready, reasons, index: index(), refused: refused() })
    })
}

export const HEALTH_OPERATIONS: OperationGroup = {
  tag: 'health',
  operations: {
    live: {
      route: 'GET /health/live',
      summary: 'Whether the process answers',
      answer: { description: 'It does.', json: okShape },
    },
    ready: {
      route: 'GET /health/ready',
      summary:
        'Whether the store answers and has space, the chain tracker answers, and the index matches the admitted set',
      answer: { description: 'All of that is true.', json: okShape },
      errors: { NOT_READY: 'Something is not; `error` has the first reason, and `/health` all of them.' },
    },
    health: {
      route: 'GET /health',
      summary: 'Liveness and readiness in detail, and what was refused',
      answer: { description: 'The host is ready.', json: healthShape(true) },
      otherAnswers: {
        503: { description: 'The process answers, but is not ready.', json: healthShape(false) },
      },
    },
  },
}
