import { Router } from 'express'
import { z } from 'zod'
import { BadRequestError, NotFoundError } from '../../gateway/http/errors.js'
import type { RequestBodies } from '../../gateway/http/request-body.js'
import type { ReorgMonitor } from '../chain/reorg-monitor.js'
import type { OverlayEngine } from '../submission/overlay-engine.js'

const MAX_BODY_BYTES = 1024

const told = z.object({ height: z.int().nonnegative().optional() })

/**
 * `POST /admin/headers`: the operator, or the operator's node, tells that the chain has changed, from a height on where one
 * is given. The kept proofs are held against it at once.
 *
 * @param watch Without one, proofs are not checked here.
 */
export function headersRoutes(
  watch: ReorgMonitor | undefined,
  { engine, bodies }: { engine: Pick<OverlayEngine, 'releaseHeld'>; bodies: RequestBodies },
): Router {
  return Router().post('/headers', bodies.json({ limit: MAX_BODY_BYTES }), async (request, response) => {
    const asked = told.safeParse(request.body ?? {})
    if (!asked.success)
      throw new BadRequestError('BAD_BODY', 'the body must be {"height": <number>} or empty')
    if (watch === undefined)
      throw new NotFoundError('this host does not check proofs: CHAIN_TRACKER is scripts-only')
    const round = await watch.round(asked.data.height)
    // A longer chain may hold what was not final before.
    while ((await engine.releaseHeld()) > 0);
    response.json(round)
  })
}
