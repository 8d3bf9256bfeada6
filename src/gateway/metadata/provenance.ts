import type { RequestHandler } from 'express'
import { z } from 'zod'
import { TIP } from '../../../backend/src/graph/records.js'
import { parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { provenanceOf } from '../../../backend/src/read/provenance.js'
import { OriginUnknownError } from '../http/errors.js'
import type { GatewayParts } from '../http/gateway-parts.js'
import { countTransactions, longRead } from '../http/long-read.js'
import { described, ORIGIN_PENDING, PROOF_ANSWER, type Routes, STORE_ERRORS } from '../http/operation.js'
import { askedOutpoint, pointerIn } from '../http/schemas.js'
import { BAD_PART, beefAnswer, incompleteProof, partOf, partQuery, sendBeef } from '../http/send-beef.js'

/**
 * `GET /provenance/{outpoint}`, below each of the prefixes: proof of where the ordinal at that outpoint comes from, as an
 * Outpoint BEEF (BRC-158) of its tip that a client can verify offline (`docs/spec/http.md`, Metadata and proofs).
 */
export function provenanceRoutes({ store, graph }: GatewayParts): Routes {
  const provenance: RequestHandler = async (request, response) => {
    const outpoint = parseOutpoint(pointerIn(request))
    const part = partOf(request.query)
    // Throws if the subject of the proof is blocked.
    store.ordinals.at(outpoint, TIP)
    const answer = await longRead(response, async (pace) => {
      const found = await graph.acrossSnapshots(() => provenanceOf(outpoint, graph, { ...part, pace }))
      if (found.kind === 'unknown') {
        const message = 'this store has no ordinal at this outpoint, or its origin is unknown here'
        throw new OriginUnknownError(message, outpoint)
      }
      if (found.kind === 'incomplete') throw incompleteProof(found)
      const { tip: subject, transactions } = found
      countTransactions(response, transactions.length)
      return await beefAnswer({ subject, transactions, store: graph.transactions })
    })
    await sendBeef({ request, response, answer })
  }
  return routes({ provenance })
}

const routes = described({
  tag: 'content',
  operations: {
    provenance: {
      route: 'GET /provenance/{outpoint}',
      pattern: /^\/provenance\//,
      summary: 'Proof of the origin and the current outpoint of an ordinal',
      description:
        'The current outpoint, every hop back to the origin, and for each hop the transactions whose values locate the ordinal, each with its merkle path if stored. With `known`, only what follows the last step that the caller knows.',
      params: z.object({ outpoint: askedOutpoint }),
      query: partQuery,
      answer: PROOF_ANSWER,
      errors: {
        BAD_OUTPOINT: `The path does not end with an outpoint. ${BAD_PART}`,
        NOT_FOUND:
          'This store has no ordinal there, or a transaction on the way back to its origin is missing.',
        ORIGIN_PENDING,
        BLOCKED: 'The operator has blocked the output or the current content of the ordinal.',
        ...STORE_ERRORS,
      },
    },
  },
})
