import { type RequestHandler, Router } from 'express'
import { type ProvenanceStore, provenanceOf } from '../../backend/src/graph/provenance.js'
import { PointerError, parseOutpoint } from '../../backend/src/protocol/outpoint.js'
import { NotFoundError } from './error-response.js'
import { percentDecoded } from './percent-decode.js'
import { readingFor } from './reading-for.js'
import { incompleteProof, sendOutpointBeef } from './send-outpoint-beef.js'

/**
 * `GET /provenance/{outpoint}`, below each of the prefixes: where the ordinal that stands there comes from, as an
 * Outpoint BEEF (BRC-158) of its tip that a verifier can check offline (`spec/http.md`, Provenance).
 */
export function provenanceRoutes(store: ProvenanceStore, prefixes: string[]): Router {
  // Not a path with a parameter: what Express cannot decode is no outpoint, as any other text.
  return Router().use(prefixes, Router().get(/^\/provenance\//, serveProvenance(store)))
}

function serveProvenance(store: ProvenanceStore): RequestHandler {
  return async (request, response) => {
    const written = request.path.slice('/provenance/'.length)
    const text = percentDecoded(written)
    if (text === undefined) throw new PointerError('BAD_OUTPOINT', written)
    const provenance = await provenanceOf(parseOutpoint(text), readingFor(response, store))
    if (provenance.kind === 'unknown') {
      throw new NotFoundError('no ordinal at this outpoint in this store, or its origin is not known here')
    }
    if (provenance.kind === 'incomplete') throw incompleteProof(provenance)
    const { tip: subject, transactions } = provenance
    await sendOutpointBeef({ request, response, subject, transactions, store })
  }
}
