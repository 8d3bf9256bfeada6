import type { RequestHandler } from 'express'
import { z } from 'zod'
import type { SightingRecord } from '../../../backend/src/graph/conflict-resolution.js'
import { ChainTrackerError } from '../../../backend/src/graph/errors.js'
import { readProof } from '../../../backend/src/graph/read-beef.js'
import { blockText, type Proof } from '../../../backend/src/graph/records.js'
import { BeefError } from '../../../backend/src/protocol/beef.js'
import { fromHex } from '../../../backend/src/protocol/bytes.js'
import type { FactStore } from '../../../backend/src/read/fact-store.js'
import { sightingOfStatus } from '../../chain/sources/arc.js'
import type { ProofVerifier } from '../../chain/tracker/chain-tracker.js'
import { AnswerError } from '../../gateway/http/errors.js'
import { described, type Routes, STORE_ERRORS } from '../../gateway/http/operation.js'
import type { RequestBodies } from '../../gateway/http/request-body.js'
import { count, validateList } from '../../gateway/http/schemas.js'
import { requireBearer } from '../http/admin-guard.js'
import type { OverlayEngine } from '../writer/overlay-engine.js'

/** A batch of ARC has up to 500 callbacks, each of some hundred bytes, with a path if the transaction is mined. */
const MAX_BODY_BYTES = 1024 * 1024
const MAX_BATCH = 500
/** The longest path in hex: that of one transaction has some 70 characters for each level of its tree. */
const MAX_PATH_LENGTH = 32_000

export interface ArcIngestOptions {
  engine: Pick<OverlayEngine, 'writes'>
  graph: Pick<FactStore, 'transactions' | 'record'>
  proofs: ProofVerifier
  bodies: RequestBodies
  /** Passes on a verified proof of an unknown transaction: another gateway on the same log may be waiting for it. */
  passOn?: ((txid: string, proof: Proof) => Promise<void>) | undefined
  record(sightings: SightingRecord[]): Promise<unknown>
  maxTrackerBlocks: number
  /** The token that callbacks must send; if undefined, anybody may send proofs, which are verified anyway. */
  token?: string | undefined
}

const hex = z.string().regex(/^(?:[0-9a-fA-F]{2})*$/)
/** The fields of an ARC callback that are used here; it has more. Without a path, it reports only a status. */
const notice = z.object({
  txid: z
    .string()
    .regex(/^[0-9a-fA-F]{64}$/)
    .transform((txid) => txid.toLowerCase()),
  merklePath: hex.nullish(),
  blockHeight: count.nullish(),
  txStatus: z.unknown().optional(),
})
type Notice = z.output<typeof notice>
const notices = z.array(notice).max(MAX_BATCH)
/** One callback, several, or a batch as sent by ARC's callbacker. */
const noticesBody = z.union([notices, z.object({ callbacks: notices }), notice])
const noticeAnswer = z.strictObject({ status: z.literal('success'), message: z.string() })

/**
 * `POST /arc-ingest`: a transaction processor (ARC) delivers the merkle path of a transaction (`docs/spec/http.md`, Overlay).
 * Callbacks without a path are acknowledged, as ARC would send them again. With the configured token, the status in them is recorded
 * (`docs/spec/overlay.md`, Sightings).
 */
export function arcIngestRoutes(options: ArcIngestOptions): Routes {
  const { token, bodies, record } = options
  const guards = token === undefined ? [] : [requireBearer(token, 'the callback token')]
  const json = bodies.json({ limit: MAX_BODY_BYTES })
  const ingestProof: RequestHandler = async (request, response) => {
    const said = noticesIn(request.body)
    const proven = said.filter(hasPath)
    // Anybody may bring a proof, which is verified. A status is trusted only from the processor.
    if (token !== undefined) await record(said.flatMap(sightingIn))
    const failures = await ingest(proven, options)
    // A failure that may not recur makes ARC send everything again; the rest is known by then.
    const failure = failures.find((each) => each instanceof ChainTrackerError) ?? failures[0]
    if (failure !== undefined) throw failure
    const message =
      proven.length > 0 ? 'Transaction status updated' : 'Transaction status received without proof'
    response.json({ status: 'success', message })
  }
  return routes({ ingestProof: [...guards, json, ingestProof] })
}

function hasPath({ merklePath }: Notice): boolean {
  return merklePath !== undefined && merklePath !== null && merklePath !== ''
}

function sightingIn(notice: Notice): SightingRecord[] {
  const status = hasPath(notice) ? undefined : sightingOfStatus(notice.txStatus)
  return status === undefined ? [] : [{ txid: notice.txid, status }]
}

function noticesIn(body: unknown): Notice[] {
  const read = validateList(
    noticesBody,
    body,
    'the body must be {"txid": "<hex>", "merklePath": "<hex>", "blockHeight": <number>}, or a list of those',
  )
  return Array.isArray(read) ? read : 'callbacks' in read ? read.callbacks : [read]
}

/**
 * Stores the valid proofs.
 *
 * @returns Why the others are not stored.
 */
async function ingest(proven: Notice[], options: ArcIngestOptions): Promise<Error[]> {
  const failures: Error[] = []
  const blocks = new Set<string>()
  for (const each of proven) {
    try {
      await ingestOne(each, { ...options, blocks })
    } catch (error) {
      const isAnswer = error instanceof AnswerError || error instanceof ChainTrackerError
      if (!(isAnswer || error instanceof BeefError)) throw error
      failures.push(error)
    }
  }
  return failures
}

/** @throws AnswerError, BeefError, ChainTrackerError */
async function ingestOne(
  { txid, merklePath, blockHeight }: Notice,
  { engine, graph, proofs, maxTrackerBlocks, blocks, passOn }: ArcIngestOptions & { blocks: Set<string> },
): Promise<void> {
  if ((merklePath ?? '').length > MAX_PATH_LENGTH)
    throw new AnswerError('TOO_LARGE', `a merkle path may have at most ${MAX_PATH_LENGTH} characters`)
  const proof = readProof({ txid, bump: fromHex(merklePath ?? '') })
  if (blockHeight !== undefined && blockHeight !== null && blockHeight !== proof.height)
    throw new AnswerError(
      'BAD_BODY',
      `blockHeight is ${blockHeight}, but the merkle path is of a block at ${proof.height}`,
    )
  const stored = graph.transactions.raw(txid)
  if (stored === undefined && passOn === undefined) throw unknownTransaction()
  if (stored?.proof !== undefined && blockText(stored.proof) === blockText(proof)) return
  blocks.add(blockText(proof))
  if (blocks.size > maxTrackerBlocks)
    throw new ChainTrackerError(
      `the proofs lead to more than ${maxTrackerBlocks} blocks; send the others again`,
    )
  await requireHeld(proof, proofs)
  if (stored === undefined) {
    await passOn?.(txid, proof)
    throw unknownTransaction()
  }
  await engine.writes.run(async () => {
    // The bytes are read last, as they may be many.
    const kept = graph.transactions.get(txid)
    if (kept === undefined) throw unknownTransaction()
    const transaction = { txid, raw: kept.raw, proof }
    await proofs.disproveRuledOut([transaction])
    await graph.record([transaction])
  })
}

function unknownTransaction(): AnswerError {
  return new AnswerError('NOT_FOUND', 'this store does not have the transaction')
}

/** Checked before the write, as the chain tracker may be slow. The reorg monitor finds later changes. */
async function requireHeld(proof: Proof, proofs: ProofVerifier): Promise<void> {
  const verdict = await proofs.verdict(proof)
  if (verdict === 'no')
    throw new AnswerError(
      'BAD_BODY',
      `the merkle path leads to a root that the block at ${proof.height} does not have`,
    )
  if (verdict === 'unknown')
    throw new ChainTrackerError(`the chain tracker has no block at ${proof.height} yet; try again`)
}

const routes = described({
  tag: 'overlay',
  operations: {
    ingestProof: {
      route: 'POST /arc-ingest',
      summary: 'Delivers merkle paths of stored transactions',
      description:
        'Callbacks of a transaction processor (ARC): one, an array, or `{"callbacks": […]}`. Other fields are ignored. A callback without a path is acknowledged. If the operator has set a token, send it as `Authorization: Bearer <token>`; `txStatus` is then used: transactions seen by the network rank before others, and rejected ones are invalid. Without a token, statuses are not stored.',
      body: {
        description:
          'Transactions, each with its merkle path (BUMP, BRC-74) and the height of its block if it is mined; up to 500, and up to 1 MiB.',
        json: noticesBody,
      },
      answer: { description: 'The proofs are stored.', json: noticeAnswer },
      errors: {
        BAD_BODY: 'The body is malformed, or a path belongs to another transaction, height or chain.',
        UNAUTHORIZED: 'The token is missing or wrong.',
        NOT_FOUND: 'This host does not have the transaction of a path.',
        TOO_LARGE: 'The body, the list or a path is too long.',
        NOT_READY: 'The source of block headers did not answer, or does not know that height yet; try again.',
        STORE_FULL: 'The store has no space left.',
        ...STORE_ERRORS,
      },
    },
  },
})
