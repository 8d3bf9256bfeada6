import { createHash } from 'node:crypto'
import { type RequestHandler, Router } from 'express'
import { type OutpointBeef, outpointBeef } from '../../backend/src/graph/outpoint-beef.js'
import { type ProvenanceStore, provenanceOf } from '../../backend/src/graph/provenance.js'
import { UNTYPED } from '../../backend/src/protocol/media-type.js'
import { PointerError, parseOutpoint } from '../../backend/src/protocol/outpoint.js'
import { CACHE } from './cache-policy.js'
import { entityTag } from './entity-tag.js'
import { NotFoundError } from './error-response.js'
import { percentDecoded } from './percent-decode.js'
import { setSecurityHeaders } from './security-headers.js'
import { sendPieces } from './send-pieces.js'

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
    const provenance = await provenanceOf(parseOutpoint(text), store)
    if (provenance.kind === 'unknown') {
      throw new NotFoundError('no ordinal at this outpoint in this store, or its origin is not known here')
    }
    if (provenance.kind === 'incomplete') {
      throw new NotFoundError(
        `this store does not hold all that the proof takes: it ends at ${provenance.txid}`,
      )
    }
    const { tip: subject, transactions } = provenance
    const body = await outpointBeef({ subject, transactions, store })
    setSecurityHeaders(response, { active: false })
    response.set({ 'Cache-Control': CACHE.revalidate, ETag: tagOf(body, transactions) })
    if (request.fresh) {
      response.status(304).end()
      return
    }
    response.setHeader('Content-Type', UNTYPED)
    response.setHeader('Content-Length', body.length)
    if (request.method === 'HEAD') {
      response.end()
      return
    }
    await sendPieces(response, { pieces: body.bytes(), length: body.length })
  }
}

/** Of what makes the body: its head, and then its transactions by their hashes. */
function tagOf({ head }: OutpointBeef, transactions: { txid: string }[]): string {
  const hash = createHash('sha256')
  for (const piece of head) hash.update(piece)
  for (const { txid } of transactions) hash.update(txid)
  return entityTag(hash.digest('hex'))
}
