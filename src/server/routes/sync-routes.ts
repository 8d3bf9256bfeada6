import { type RequestHandler, type Response, Router } from 'express'
import type { BlocklistFilter } from '../../../backend/src/graph/blocklist-filter.js'
import type { GraphStore, RawTransaction } from '../../../backend/src/graph/graph-store.js'
import { toHex } from '../../../backend/src/protocol/bytes.js'
import type { Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { BadRequestError, NotFoundError } from '../../gateway/http/errors.js'
import type { RequestBodies } from '../../gateway/http/request-body.js'
import { sendChunks } from '../../gateway/http/send-chunks.js'
import { offeredOutputs } from '../gasp/offered-outputs.js'
import { formatGaspOutpoint, nodeRequest, syncRequest } from '../gasp/sync-messages.js'

/** Either question takes some hundred characters. */
const MAX_BODY_BYTES = 4096
/** How many bytes of a transaction are written as hex at once. */
const PIECE = 64 * 1024

export interface SyncRoutesOptions {
  graph: GraphStore
  guard: BlocklistFilter
  bodies: RequestBodies
  /** The topic of this host that a name or an alias means; undefined where there is none. */
  topicOf: (name: string) => string | undefined
}

/** What peers ask that sync with this host (GASP): what it has to offer, and transactions of that (`docs/sync.md`). */
export function syncRoutes(options: SyncRoutesOptions): Router {
  const body = options.bodies.json({ limit: MAX_BODY_BYTES })
  return Router()
    .post('/requestSyncResponse', body, offer(options))
    .post('/requestForeignGASPNode', body, hydrate(options))
}

function offer({ graph, guard, topicOf }: SyncRoutesOptions): RequestHandler {
  return async (request, response) => {
    const topic = topicOf(request.get('x-bsv-topic') ?? '')
    if (topic === undefined)
      throw new BadRequestError('BAD_BODY', 'the header x-bsv-topic must name a topic of this host')
    const asked = syncRequest.safeParse(request.body)
    if (!asked.success)
      throw new BadRequestError(
        'BAD_BODY',
        'the body must be {"version": 1, "since": <score>, "limit": <number>}',
      )
    const { since, limit } = asked.data
    response.json({ UTXOList: await offeredOutputs({ topic, since, limit }, { graph, guard }), since })
  }
}

function hydrate({ graph, guard }: SyncRoutesOptions): RequestHandler {
  return async (request, response) => {
    const asked = nodeRequest.safeParse(request.body)
    if (!asked.success)
      throw new BadRequestError(
        'BAD_BODY',
        'the body must be {"graphID": "<txid>.<vout>", "txid": "<hex>", "outputIndex": <number>}',
      )
    const { graphID, txid, outputIndex } = asked.data
    const outpoint = { txid, vout: outputIndex }
    // Bytes are read for nobody who asks for anything else.
    if (!(await isOfGraph(outpoint, graph)) || !(await isOffered(graphID, graph))) throw notOffered()
    // What was spent is evidence of what came after it, blocked or not (`docs/blocking.md`).
    await guard.refuse(
      (await graph.transactions.spenderOf(outpoint)) === undefined ? [graphID, outpoint] : [graphID],
    )
    const transaction = await graph.transactions.raw(txid)
    if (transaction === undefined) throw notOffered()
    await sendNode(response, { transaction, graphId: formatGaspOutpoint(graphID), outputIndex })
  }
}

function notOffered(): NotFoundError {
  return new NotFoundError('this host has no such output in any graph that it offers')
}

/** Whether a topic holds an output, and its transaction counts. */
async function isOffered({ txid, vout }: Outpoint, graph: GraphStore): Promise<boolean> {
  const admissions = await graph.admissions.of({ txid, vout })
  return admissions.length > 0 && (await graph.transactions.winnerOver(txid)) === undefined
}

/** Whether an output is one that a graph can ask for: offered, or spent by what this host holds. */
async function isOfGraph(outpoint: Outpoint, graph: GraphStore): Promise<boolean> {
  return (await graph.transactions.spenderOf(outpoint)) !== undefined || (await isOffered(outpoint, graph))
}

/** Written a piece at a time: as text, a transaction is twice as long as it is. */
async function sendNode(
  response: Response,
  node: { transaction: RawTransaction; graphId: string; outputIndex: number },
): Promise<void> {
  const { transaction, graphId, outputIndex } = node
  const proof = transaction.proof && `,"proof":"${toHex(transaction.proof.merklePath)}"`
  const head = `{"graphID":"${graphId}","outputIndex":${outputIndex}${proof ?? ''},"rawTx":"`
  const tail = '"}'
  const length = head.length + 2 * transaction.length + tail.length
  response.type('json').set('Content-Length', String(length))
  await sendChunks(response, { pieces: written({ head, transaction, tail }), length })
}

async function* written(text: {
  head: string
  transaction: RawTransaction
  tail: string
}): AsyncGenerator<string> {
  yield text.head
  for await (const { bytes } of text.transaction.chunks())
    for (let at = 0; at < bytes.length; at += PIECE)
      yield Buffer.from(bytes.subarray(at, at + PIECE)).toString('hex')
  yield text.tail
}
