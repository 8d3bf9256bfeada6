import { Router } from 'express'
import { z } from 'zod'
import type { GraphStore } from '../../../backend/src/graph/graph-store.js'
import { readProof } from '../../../backend/src/graph/read-beef.js'
import { graphRecords, type Proof } from '../../../backend/src/graph/records.js'
import { spendsBy } from '../../../backend/src/graph/transaction-records.js'
import { fromHex } from '../../../backend/src/protocol/bytes.js'
import { readTransaction } from '../../../backend/src/protocol/transaction.js'
import { BadRequestError, NotFoundError } from '../../gateway/http/errors.js'
import { type OperationGroup, STORE_ERRORS } from '../../gateway/http/operation.js'
import type { RequestBodies } from '../../gateway/http/request-body.js'
import { count, validate } from '../../gateway/http/schemas.js'
import type { ProofVerifier } from '../chain/chain-tracker.js'
import { ChainTrackerError } from '../chain/chain-tracker.js'
import { requireBearer } from '../http/admin-guard.js'
import type { OverlayEngine } from '../submission/overlay-engine.js'

/** The path of one transaction has some 70 characters for each level of its tree; the other fields some hundred in total. */
const MAX_BODY_BYTES = 32 * 1024

export interface ArcIngestOptions {
  engine: Pick<OverlayEngine, 'writeLock'>
  graph: Pick<GraphStore, 'transactions' | 'record'>
  proofs: ProofVerifier
  bodies: RequestBodies
  /** The token that callbacks must send; if undefined, anybody may send proofs, which are verified anyway. */
  token?: string | undefined
}

const hex = z.string().regex(/^(?:[0-9a-fA-F]{2})+$/)
/** The fields of an ARC callback that are used here; it has more. */
const notice = z.object({
  txid: z
    .string()
    .regex(/^[0-9a-fA-F]{64}$/)
    .transform((txid) => txid.toLowerCase()),
  merklePath: hex,
  blockHeight: count.optional(),
})
const noticeAnswer = z.strictObject({ status: z.literal('success'), message: z.string() })

/** `POST /arc-ingest`: a transaction processor (ARC) delivers the merkle path of a transaction (`spec/http.md`, Overlay). */
export function arcIngestRoutes(options: ArcIngestOptions): Router {
  const { engine, graph, proofs, token, bodies } = options
  const guards = token === undefined ? [] : [requireBearer(token, 'the callback token')]
  const json = bodies.json({ limit: MAX_BODY_BYTES })
  return Router().post('/arc-ingest', ...guards, json, async (request, response) => {
    const { txid, merklePath, blockHeight } = validate(
      notice,
      request.body,
      'the body must be {"txid": "<hex>", "merklePath": "<hex>", "blockHeight": <number>}',
    )
    const proof = readProof({ txid, bump: fromHex(merklePath) })
    if (blockHeight !== undefined && blockHeight !== proof.height)
      throw new BadRequestError(
        'BAD_BODY',
        `blockHeight is ${blockHeight}, but the merkle path is of a block at ${proof.height}`,
      )
    if (!(await graph.transactions.has(txid))) throw unknownTransaction()
    await requireHeld(proof, proofs)
    await engine.writeLock.run(async () => {
      // Its bytes are read last, as they may be many.
      const kept = await graph.transactions.get(txid)
      if (kept === undefined) throw unknownTransaction()
      const transaction = { txid, raw: kept.raw, proof }
      const spends = spendsBy(readTransaction(kept.raw, { txid }))
      await proofs.disproveConflicts(spends)
      await graph.record(graphRecords({ transactions: [transaction], spends }))
    })
    response.json({ status: 'success', message: 'Transaction status updated' })
  })
}

function unknownTransaction(): NotFoundError {
  return new NotFoundError('this store does not have the transaction')
}

/** Called without the write lock, as the chain tracker may be slow. The reorg monitor finds any change since then. */
async function requireHeld(proof: Proof, proofs: ProofVerifier): Promise<void> {
  const verdict = await proofs.verdict(proof)
  if (verdict === 'no')
    throw new BadRequestError(
      'BAD_BODY',
      `the merkle path leads to a root that the block at ${proof.height} does not have`,
    )
  if (verdict === 'unknown')
    throw new ChainTrackerError(`the chain tracker has no block at ${proof.height} yet; try again`)
}

export const ARC_OPERATIONS: OperationGroup = {
  tag: 'overlay',
  operations: {
    ingestProof: {
      route: 'POST /arc-ingest',
      summary: 'Delivers the merkle path of a transaction that this host has',
      description:
        'The callback of a transaction processor (ARC); other fields are ignored. If the operator has set a token for it, it is sent as `Authorization: Bearer <token>`.',
      body: {
        description:
          'The transaction, its merkle path (BUMP, BRC-74), the height of its block; up to 32 KiB.',
        json: notice,
      },
      answer: { description: 'The proof is stored.', json: noticeAnswer },
      errors: {
        BAD_BODY: 'The body has another form, or the path is of another transaction, height or chain.',
        UNAUTHORIZED: 'The token is missing or wrong.',
        NOT_FOUND: 'This host does not have the transaction.',
        TOO_LARGE: 'The body is over 32 KiB.',
        NOT_READY: 'The source of block headers did not answer, or does not know that height yet; try again.',
        STORE_FULL: 'The store has no space left.',
        ...STORE_ERRORS,
      },
    },
  },
}
