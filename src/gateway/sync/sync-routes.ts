import type { RequestHandler, Response } from 'express'
import { z } from 'zod'
import { unlessBlocked } from '../../../backend/src/graph/blocklist.js'
import type { AdmissionRecord } from '../../../backend/src/graph/records.js'
import type { RawTransaction } from '../../../backend/src/graph/stored-transaction.js'
import { readOutline } from '../../../backend/src/graph/stored-transaction.js'
import type { SyncHint } from '../../../backend/src/graph/sync-hint.js'
import { hexOfSyncHint } from '../../../backend/src/graph/sync-hint.js'
import { OUTPUTS_WITH_ORDINALS } from '../../../backend/src/graph/transaction-records.js'
import { yieldToEventLoop } from '../../../backend/src/graph/yield-to-event-loop.js'
import { toHex } from '../../../backend/src/protocol/bytes.js'
import { placement } from '../../../backend/src/protocol/ordinal-flow.js'
import type { Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { TOPICS } from '../../../backend/src/protocol/profile.js'
import { isCoinbase } from '../../../backend/src/protocol/transaction.js'
import type { FactStore } from '../../../backend/src/read/fact-store.js'
import { AnswerError } from '../http/errors.js'
import type { GatewayParts } from '../http/gateway-parts.js'
import { hexChunks } from '../http/hex-chunks.js'
import { whenOpened } from '../http/long-read.js'
import { described, type Routes, STORE_ERRORS } from '../http/operation.js'
import { validate } from '../http/schemas.js'
import { sendChunks } from '../http/send-body.js'
import { NOTHING_FOLLOWED, setNamesHeaders } from '../http/tree-progress.js'
import {
  formatGaspOutpoint,
  MAX_OFFERED,
  NAME_OUTPUT,
  nodeAnswer,
  nodeRequest,
  type OfferedOutput,
  syncAnswer,
  syncRequest,
} from './sync-messages.js'

/** Either body has some hundred characters. */
const MAX_BODY_BYTES = 4096

export interface SyncRoutesOptions
  extends Pick<GatewayParts, 'graph' | 'bodies'>,
    Partial<Pick<GatewayParts, 'progress'>> {
  /** The topic of this host with a name or an alias; undefined if there is none. */
  topicOf: (name: string) => string | undefined
}

/** The routes for peers that sync with this host (GASP): the outputs it offers, and their transactions (`docs/follow.md`). */
export function syncRoutes(options: SyncRoutesOptions): Routes {
  const { graph, bodies, topicOf, progress = NOTHING_FOLLOWED } = options
  const json = bodies.json({ limit: MAX_BODY_BYTES })
  const before = [...whenOpened(graph), json]
  const offered: RequestHandler = async (request, response) => {
    const topic = topicOf(request.get('x-bsv-topic') ?? '')
    if (topic === undefined)
      throw new AnswerError('BAD_BODY', 'the header x-bsv-topic must name a topic of this host')
    const message = 'the body must be {"version": 1, "since": <score>, "limit": <number>}'
    const { since, limit } = validate(syncRequest, request.body, message)
    // A peer that follows the tree only through this host knows no more than this host.
    const { asOf, isIncomplete } = progress
    if (topic === TOPICS.names) setNamesHeaders(response, { asOf, isCatchingUp: isIncomplete })
    response.json({ UTXOList: await offeredOutputs({ topic, since, limit }, graph), since })
  }
  const node: RequestHandler = async (request, response) => {
    const { graphID, txid, outputIndex } = validate(
      nodeRequest,
      request.body,
      'the body must be {"graphID": "<txid>.<vout>", "txid": "<hex>", "outputIndex": <number>}',
    )
    const outpoint = { txid, vout: outputIndex }
    // Checked before any bytes are read.
    if (!isOfGraph(outpoint, graph) || !isOffered(graphID, graph)) throw notOffered()
    // A spent output is evidence for the outputs after it, blocked or not (`docs/operating.md`, Blocking).
    const isSpent = graph.transactions.spenderOf(outpoint) !== undefined
    graph.served.guard.refuse(isSpent ? [graphID] : [graphID, outpoint])
    const transaction = graph.transactions.raw(txid)
    if (transaction === undefined) throw notOffered()
    const hint = hexOfSyncHint(await syncHintOf(outpoint, graph))
    await sendNode(response, { transaction, graphId: formatGaspOutpoint(graphID), outputIndex, hint })
  }
  return routes({ offeredOutputs: [...before, offered], syncNode: [...before, node] })
}

function notOffered(): AnswerError {
  return new AnswerError('NOT_FOUND', 'this host has no such output in any graph that it offers')
}

function isOffered({ txid, vout }: Outpoint, graph: FactStore): boolean {
  const admissions = graph.admissions.of({ txid, vout })
  return admissions.length > 0 && graph.transactions.reasonAgainst(txid) === undefined
}

/** Whether a graph can contain an output: it is offered, or spent by a stored transaction. */
function isOfGraph(outpoint: Outpoint, graph: FactStore): boolean {
  return graph.transactions.spenderOf(outpoint) !== undefined || isOffered(outpoint, graph)
}

/** Sent in chunks, as hex makes a transaction twice as long. */
async function sendNode(
  response: Response,
  node: {
    transaction: RawTransaction
    graphId: string
    outputIndex: number
    hint: string
  },
): Promise<void> {
  const { transaction, graphId, outputIndex, hint } = node
  const proof = transaction.proof && `,"proof":"${toHex(transaction.proof.merklePath)}"`
  const head = `{"graphID":"${graphId}","outputIndex":${outputIndex}${proof ?? ''},"txMetadata":"${hint}","rawTx":"`
  const tail = '"}'
  const length = head.length + 2 * transaction.length + tail.length
  response.type('json').set('Content-Length', String(length))
  await sendChunks(response, { chunks: written({ head, bytes: transaction.chunks(), tail }), length })
}

function* written(text: {
  head: string
  bytes: ReturnType<RawTransaction['chunks']>
  tail: string
}): Generator<string> {
  yield text.head
  yield* hexChunks(text.bytes)
  yield text.tail
}

/** How many outputs are checked against the blocklist at once. */
const CHUNK = 500

/**
 * The outputs of a topic that this host offers its peers: unspent and not blocked, from a score on, by score, which is unique.
 * Names are offered even after a transfer, which `tm_names` ignores: an engine's GASP serves only offered outputs, so peers of an
 * engine would otherwise miss a mint whose outputs are all spent, and the names below it. A short page is the last one, so pages
 * are filled up after leaving out blocked outputs.
 *
 * @param query.limit At most {@link MAX_OFFERED}, which is the default.
 */
export async function offeredOutputs(
  query: { topic: string; since: number; limit?: number | undefined },
  graph: Pick<FactStore, 'admissions' | 'served'>,
): Promise<OfferedOutput[]> {
  const { topic } = query
  const always = topic === TOPICS.names ? { always: NAME_OUTPUT } : {}
  const limit = Math.min(query.limit ?? MAX_OFFERED, MAX_OFFERED)
  const page: AdmissionRecord[] = []
  for (let { since } = query; page.length < limit; ) {
    const unspent = graph.admissions.unspentOfTopic({ topic, since, limit, ...always })
    for (let at = 0; at < unspent.length; at += CHUNK) {
      page.push(...graph.served.guard.served(unspent.slice(at, at + CHUNK)))
      await yieldToEventLoop()
    }
    const last = unspent.at(-1)
    if (last === undefined || unspent.length < limit) break
    since = last.score + 1
  }
  return page
    .slice(0, limit)
    .map(({ outpoint, score }) => ({ txid: outpoint.txid, outputIndex: outpoint.vout, score }))
}

/** The most inputs that are examined: each takes reading a transaction. */
const MAX_INPUTS = 100
/** The most bytes of coins in one hint, before hex encoding. */
const MAX_COIN_BYTES = 200 * 1024
const NONE: SyncHint = { inputs: [], coins: [] }

/**
 * What a peer needs besides a transaction to place the ordinals in its outputs: the leading inputs that place or carry them, as
 * far as this host has the coins that they spend. Empty for an output of another value, which a peer requests because of that
 * value; for a mint, as a name starts a lineage by rule; and if the transaction has no ordinal here.
 */
async function syncHintOf(
  { txid, vout }: Outpoint,
  graph: Pick<FactStore, 'transactions' | 'admissions' | 'names'>,
): Promise<SyncHint> {
  if (!graph.admissions.isApplied(TOPICS.ordinals, txid)) return NONE
  const step = await readOutline(txid, graph.transactions)
  if (step === undefined || step.outputValues[vout] !== 1 || isCoinbase(step)) return NONE
  if (graph.names.genuineOrigins([{ txid, vout: NAME_OUTPUT }]).length > 0) return NONE
  const outputValues = step.outputValues.slice(0, OUTPUTS_WITH_ORDINALS)
  const isPlaced = placement({ outputValues, output: outputValues.lastIndexOf(1) })
  const hint: SyncHint = { inputs: [], coins: [] }
  let bytes = 0
  for (const [input, spent] of step.inputs.slice(0, MAX_INPUTS).entries()) {
    const source = await unlessBlocked(async () => await readOutline(spent.txid, graph.transactions))
    const satoshis = source?.outputValues[spent.vout]
    if (source === undefined || satoshis === undefined) break
    const isServed =
      satoshis === 1 &&
      source.proof !== undefined &&
      graph.admissions.of(spent).some(({ topic }) => topic === TOPICS.ordinals)
    if (isServed) hint.inputs.push(input)
    else {
      bytes += source.length
      const coin = bytes > MAX_COIN_BYTES ? undefined : graph.transactions.get(spent.txid)
      // After an unknown value, nothing can be placed.
      if (coin === undefined) break
      hint.coins.push(coin.raw)
    }
    if (isPlaced(satoshis)) break
  }
  return hint
}

const routes = described({
  tag: 'overlay',
  errors: { TOO_LARGE: 'The body is over 4 KiB.', ...STORE_ERRORS },
  operations: {
    offeredOutputs: {
      route: 'POST /requestSyncResponse',
      summary: 'The unspent outputs of a topic, for a peer that syncs',
      headers: z.object({ 'x-bsv-topic': z.string().describe('A topic, such as `tm_names`.') }),
      body: {
        description: 'The lowest score and the most outputs to return. `version` is the GASP version.',
        json: syncRequest,
      },
      answer: {
        description:
          'The outputs in order of score, at most the requested number and at most 10,000. Scores are unique.',
        json: syncAnswer,
      },
      errors: { BAD_BODY: 'There is no such topic, or the body is malformed or of another version.' },
    },
    syncNode: {
      route: 'POST /requestForeignGASPNode',
      summary: 'A transaction of the graph behind an offered output, for a peer that syncs',
      body: {
        description: 'The offered output, and the output of its graph whose transaction to return.',
        json: nodeRequest,
      },
      answer: {
        description:
          'The transaction, and its merkle path (BUMP, BRC-74) if it is known to be mined. `txMetadata` has the further data that locates its ordinals, as hex-encoded text: the inputs that are also offered, and the other coins.',
        headers: ['Content-Length'],
        json: nodeAnswer,
      },
      errors: {
        BAD_BODY: 'The body is not a valid GASP request.',
        NOT_FOUND: 'The graph is not offered here, or the output is not in any graph here.',
        BLOCKED: 'The operator has blocked the output.',
      },
    },
  },
})
