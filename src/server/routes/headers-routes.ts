import type { RequestHandler } from 'express'
import { z } from 'zod'
import type { ReorgMonitor } from '../../chain/tracker/reorg-monitor.js'
import { AnswerError } from '../../gateway/http/errors.js'
import { described, type Routes } from '../../gateway/http/operation.js'
import type { RequestBodies } from '../../gateway/http/request-body.js'
import { count, validate } from '../../gateway/http/schemas.js'
import { OPERATOR_ERRORS } from '../http/admin-guard.js'
import type { OverlayEngine } from '../writer/overlay-engine.js'

const MAX_BODY_BYTES = 1024

const headersBody = z.object({ height: count.optional() })
const roundShape = z.strictObject({
  tip: count.describe('The height of the chain.'),
  from: count.describe('The lowest height that was checked.'),
  blocks: count.describe('The number of blocks checked.'),
  disproved: count.describe('The number of transactions that lost their proof.'),
})

/**
 * `POST /admin/headers`: the operator, or the operator's node, reports that the chain has changed, optionally from a height on.
 * Stored proofs are re-verified immediately.
 *
 * @param watch If undefined, this host does not verify proofs.
 */
export function headersRoutes(
  watch: ReorgMonitor | undefined,
  { engine, bodies }: { engine: Pick<OverlayEngine, 'releaseNonFinal'>; bodies: RequestBodies },
): Routes {
  const headersChanged: RequestHandler = async (request, response) => {
    const { body = {} } = request
    const { height } = validate(headersBody, body, 'the body must be {"height": <number>} or empty')
    if (watch === undefined)
      throw new AnswerError('NOT_FOUND', 'this host does not check proofs: CHAIN_TRACKER is scripts-only')
    const round = await watch.round(height)
    // On a longer chain, non-final transactions may have become final.
    while ((await engine.releaseNonFinal()) > 0);
    response.json(round)
  }
  return routes({ headersChanged: [bodies.json({ limit: MAX_BODY_BYTES }), headersChanged] })
}

const routes = described({
  tag: 'operator',
  errors: OPERATOR_ERRORS,
  operations: {
    headersChanged: {
      route: 'POST /headers',
      summary: 'Reports that the chain has changed',
      description:
        'Makes the host check the blocks of its stored proofs, as it also does periodically. Proofs of blocks that are no longer in the chain are discarded.',
      body: { description: 'The lowest height to check (optional). Up to 1 KiB.', json: headersBody },
      answer: { description: 'The check is done.', json: roundShape },
      errors: {
        BAD_BODY: 'The height is not a number of 0 or more.',
        TOO_LARGE: 'The body is over 1 KiB.',
        NOT_FOUND: 'The operator has set no token, or this host does not check proofs.',
        NOT_READY:
          'The source of block headers did not answer, or is far below its last height. Blocks checked until then stay checked.',
      },
    },
  },
})
