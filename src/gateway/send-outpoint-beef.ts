import { createHash } from 'node:crypto'
import type { Request, Response } from 'express'
import type { TransactionReader } from '../../backend/src/graph/graph-store.js'
import type { ListedBeef, ListedTransaction } from '../../backend/src/graph/listed-beef.js'
import { outpointBeef } from '../../backend/src/graph/outpoint-beef.js'
import { UNTYPED } from '../../backend/src/protocol/media-type.js'
import type { Outpoint } from '../../backend/src/protocol/outpoint.js'
import { CACHE } from './cache-policy.js'
import { endedByPrecondition, entityTag } from './entity-tag.js'
import { NotFoundError } from './error-response.js'
import { setSecurityHeaders } from './security-headers.js'
import { sendPieces } from './send-pieces.js'

/** Answers with the Outpoint BEEF (BRC-158) of stored transactions, which stand parents first. */
export async function sendOutpointBeef(options: {
  request: Request
  response: Response
  subject: Outpoint
  transactions: ListedTransaction[]
  store: TransactionReader
}): Promise<void> {
  const { request, response, ...proof } = options
  const body = await outpointBeef(proof)
  setSecurityHeaders(response, { active: false })
  const tag = tagOf(body, proof.transactions)
  response.set({ 'Cache-Control': CACHE.revalidate, ETag: tag })
  if (endedByPrecondition({ request, response, tag })) return
  response.setHeader('Content-Type', UNTYPED)
  response.setHeader('Content-Length', body.length)
  if (request.method === 'HEAD') {
    response.end()
    return
  }
  await sendPieces(response, { pieces: body.bytes(), length: body.length })
}

/** Of what makes the body: its head, and then its transactions by their hashes. */
function tagOf({ head }: ListedBeef, transactions: { txid: string }[]): string {
  const hash = createHash('sha256')
  for (const piece of head) hash.update(piece)
  for (const { txid } of transactions) hash.update(txid)
  return entityTag(hash.digest('hex'))
}

/** A part of a proof would not be one. */
export function incompleteProof({ txid }: { txid: string }): NotFoundError {
  return new NotFoundError(`this store does not hold all that the proof takes: it ends at ${txid}`)
}
