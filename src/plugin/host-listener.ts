import type { Request, RequestHandler, Response } from 'express'
import { z } from 'zod'
import type { RootChecker } from '../../backend/src/graph/overlay-interfaces.js'
import { readBeef, readProof } from '../../backend/src/graph/read-beef.js'
import { admittedTransactions } from '../../backend/src/graph/transaction-records.js'
import { BeefError } from '../../backend/src/protocol/beef.js'
import { ByteCursor } from '../../backend/src/protocol/byte-cursor.js'
import { asUint8Array, fromHex } from '../../backend/src/protocol/bytes.js'
import { formatOutpoint, parseOutpoint } from '../../backend/src/protocol/outpoint.js'
import type { FactStore } from '../../backend/src/read/fact-store.js'
import { hostRules } from '../../backend/src/read/host-index.js'
import { type HeardProof, HeardProofs, recordProofs } from './heard-proofs.js'

/** The part of an Express app that is used; Express 4 has it too. Its types may come from another copy of Express. */
interface ListenedApp {
  use(handler: (...parameters: never[]) => unknown): unknown
}

export interface HostListenerOptions {
  /**
   * Checks proofs from `/arc-ingest`, which an engine does not; the host's own. `scripts only` believes every proof that the host
   * takes.
   */
  chainTracker: RootChecker | 'scripts only'
  /** Called if something that the host accepted could not be recorded, or a proof could not be checked. */
  onError?: (error: unknown) => void
  /** How long the chain tracker may take, and so delay an answer, in milliseconds; 10,000 by default. */
  trackerTimeout?: number
  /**
   * Milliseconds before the first retry of a proof that comes before its transaction, or that the chain tracker cannot check yet;
   * 1,000 by default. Nine more retries follow, with twice the wait each time.
   */
  retryAfter?: number
}

/** Handles a request that the host has answered with a status; undefined if there is nothing to do. */
type Listen = (request: Request, status: number) => Promise<void> | undefined

/**
 * Passes on to the index what a host's engine keeps to itself: merkle proofs of transactions that the index knows, whether they
 * come to `/arc-ingest` or with the transaction to `/submit`, and the end of a ban (`/admin/unban`), which lifts the block that
 * the ban caused.
 *
 * Call it before `start`, like `attachGateway`. It reads no body and changes no answer, but delays the end of an answer until the
 * index has what the request says. It trusts requests to `/submit` and `/admin/unban` that the host has answered with 200. A proof
 * at `/arc-ingest` is checked here, so the host need not know the transaction; it is ignored only if the host refuses the sender,
 * with 401, 403 or 429.
 *
 * @param stores The stores from `storesOf`.
 */
export function attachHostListener(
  app: ListenedApp,
  { graph }: { graph: FactStore },
  { chainTracker, onError = () => {}, trackerTimeout = 10_000, retryAfter = 1000 }: HostListenerOptions,
): void {
  if (chainTracker !== 'scripts only') hostRules(graph).chainTracker ??= chainTracker
  const proofs = new HeardProofs({ graph, chainTracker, onError, trackerTimeout, retryAfter })
  const listeners: Record<string, Listen> = {
    '/submit': (request, status) =>
      status === 200 ? recordProofs(graph, admittedTransactions(readBeef(beefIn(request)))) : undefined,
    '/arc-ingest': ({ body }, status) => {
      const isOpen = chainTracker === 'scripts only' ? status === 200 : !REFUSALS.has(status)
      const heard = isOpen ? proofIn(body) : undefined
      return heard && proofs.hear(heard)
    },
    '/admin/unban': ({ body }, status) => {
      const { type, value } = body as { type: string; value: string }
      return status === 200 && type === 'outpoint' ? liftEviction(graph, value.replace('.', '_')) : undefined
    },
  }
  const handler: RequestHandler = (request, response, next) => {
    // Express matches paths in any case, and with a trailing slash.
    const path = request.path.toLowerCase().replace(/\/$/, '')
    const listen = request.method === 'POST' ? listeners[path] : undefined
    if (listen !== undefined)
      beforeEnd(response, async () => await listen(request, response.statusCode), onError)
    next()
  }
  app.use(handler)
}

/** The statuses with which a host refuses a sender, or one that sends too often. */
const REFUSALS = new Set([401, 403, 429])

/**
 * Delays the end of an answer until some work is done. The head is sent first, so that a host that fails after it has answered
 * sees that and does not answer again.
 */
function beforeEnd(response: Response, work: () => Promise<void>, onError: (error: unknown) => void): void {
  const end = response.end.bind(response) as (...args: unknown[]) => typeof response
  const ended = (...args: unknown[]): typeof response => {
    response.end = (() => response) as typeof response.end
    if (!response.headersSent) response.flushHeaders()
    work()
      .catch(onError)
      .finally(() => end(...args))
    return response
  }
  response.end = ended as typeof response.end
}

/** The BEEF of a submission, which off-chain values may follow. @throws BeefError if the body has another form. */
function beefIn({ body, headers }: Request): Uint8Array {
  if (!(body instanceof Uint8Array)) throw new BeefError('the host took a submission that is not bytes')
  const bytes = asUint8Array(body)
  if (headers['x-includes-off-chain-values'] !== 'true') return bytes
  const cursor = new ByteCursor(bytes, (message) => new BeefError(message))
  return cursor.take(cursor.varint())
}

/** The longest path of one transaction: some 70 characters for each level of its tree. */
const MAX_PATH_CHARACTERS = 32 * 1024
const notice = z.object({
  txid: z
    .string()
    .length(64)
    .transform((txid) => txid.toLowerCase()),
  merklePath: z.string().max(MAX_PATH_CHARACTERS),
})

/** The proof in ARC's callback; undefined if the body is something else. */
function proofIn(body: unknown): HeardProof | undefined {
  const parsed = notice.safeParse(body)
  if (!parsed.success) return undefined
  const { txid, merklePath } = parsed.data
  try {
    return { txid, proof: readProof({ txid, bump: fromHex(merklePath) }) }
  } catch (error) {
    if (error instanceof BeefError || error instanceof RangeError) return undefined
    throw error
  }
}

/** How the store marks an output that a host evicted, as opposed to one that its operator blocked. */
const EVICTED = 'evicted'
/** The most blocked outputs of one transaction that are examined. */
const MOST_BLOCKED = 1000

/** Unblocks an output, unless the operator has blocked it. For an unproven one, the ban was recorded as a rejection. */
async function liftEviction(graph: FactStore, text: string): Promise<void> {
  await graph.opened?.()
  const { blocklist, sightings } = graph
  const outpoint = parseOutpoint(text)
  const { txid } = outpoint
  if (sightings.of([txid]).get(txid) === 'rejected') await sightings.record([{ txid, status: 'seen' }])
  const value = formatOutpoint(outpoint)
  const kind = 'outpoint'
  const blocked = blocklist.page({
    kind,
    after: { kind, value: `${outpoint.txid}_` },
    limit: MOST_BLOCKED,
  })
  if (blocked.some((each) => each.value === value && each.reason === EVICTED))
    await blocklist.remove({ kind, value })
}
