import { type RequestHandler, Router } from 'express'
import { z } from 'zod'
import { BlocklistFilter } from '../../../backend/src/graph/blocklist-filter.js'
import type { GraphStore } from '../../../backend/src/graph/graph-store.js'
import type { AdmissionRecord, Proof } from '../../../backend/src/graph/records.js'
import { storedOutput } from '../../../backend/src/graph/stored-transaction.js'
import { readBump } from '../../../backend/src/protocol/bump.js'
import { equalBytes, fromHex, reversed } from '../../../backend/src/protocol/bytes.js'
import { formatOutpoint, type Outpoint, parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { CACHE } from '../../gateway/http/caching.js'
import { NotFoundError } from '../../gateway/http/errors.js'
import { type OperationGroup, STORE_ERRORS } from '../../gateway/http/operation.js'
import { askedOutpoint, blockHeight, count, outpoint, txid, validate } from '../../gateway/http/schemas.js'
import { sendJson } from '../../gateway/http/send-body.js'

const flag = z.enum(['true', 'false']).default('false')
const outputQuery = z.object({
  sats: flag.describe('Whether to include the value.'),
  block: flag.describe('Whether to include the place in the chain.'),
  spend: flag.default('true').describe('Whether to include the transaction that spends it.'),
})

/** `IndexedOutput` of `@1sat/types`. */
const outputShape = z.strictObject({
  outpoint,
  score: z
    .number()
    .describe(
      'Orders outputs: the height, and the place in the block in billionths; seconds since 1970 if not mined.',
    ),
  satoshis: count.optional(),
  blockHeight: blockHeight.optional(),
  blockIdx: count.optional().describe('The place in the block; the coinbase is 0.'),
  spend: txid.optional().describe('The transaction that spends it; absent if this host knows none.'),
})
const spendShape = z.strictObject({
  spendTxid: txid.nullable().describe('The transaction that spends it; null if this host knows none.'),
})

/**
 * Outputs that a topic holds, as `TxoClient` of `@1sat/client` asks for them, below each of the prefixes. Of any other output
 * this host does not know whether it is spent: it is not found.
 */
export function txoRoutes({ graph, prefixes }: { graph: GraphStore; prefixes: string[] }): Router {
  const routes = Router().get('/:outpoint', sendOutput(graph)).get('/:outpoint/spend', sendSpend(graph))
  return Router().use(prefixes, routes)
}

type Handler = RequestHandler<{ outpoint: string }>

function sendOutput(graph: GraphStore): Handler {
  const filter = new BlocklistFilter(graph)
  return async ({ params, query }, response) => {
    const outpoint = parseOutpoint(params.outpoint)
    const asked = validate(outputQuery, query, 'sats, block and spend must be true or false')
    await filter.refuse([outpoint])
    const record = await graph.consistent(async () => {
      const admission = await admissionOf(outpoint, graph)
      return admission && (await recordOf(admission, { ...asked, graph }))
    })
    if (record === undefined) throw notHeld()
    response.set('Cache-Control', CACHE.revalidate)
    sendJson(response, record)
  }
}

function sendSpend(graph: GraphStore): Handler {
  const filter = new BlocklistFilter(graph)
  return async ({ params }, response) => {
    const outpoint = parseOutpoint(params.outpoint)
    await filter.refuse([outpoint])
    const spendTxid = await graph.consistent(async () => {
      if ((await admissionOf(outpoint, graph)) === undefined) return undefined
      return (await graph.transactions.spenderOf(outpoint)) ?? null
    })
    if (spendTxid === undefined) throw notHeld()
    response.set('Cache-Control', CACHE.revalidate)
    sendJson(response, { spendTxid } satisfies z.output<typeof spendShape>)
  }
}

function notHeld(): NotFoundError {
  return new NotFoundError('no topic of this host holds this output')
}

/** The first admission of an output; undefined if no topic holds it, or its transaction does not count. */
async function admissionOf(outpoint: Outpoint, graph: GraphStore): Promise<AdmissionRecord | undefined> {
  const [admission, ...others] = await graph.admissions.of(outpoint)
  if (admission === undefined || (await graph.transactions.winnerOver(outpoint.txid)) !== undefined)
    return undefined
  return others.reduce((first, each) => (each.score < first.score ? each : first), admission)
}

async function recordOf(
  { outpoint, score }: AdmissionRecord,
  { graph, sats, block, spend }: z.output<typeof outputQuery> & { graph: GraphStore },
): Promise<z.output<typeof outputShape>> {
  const { transactions } = graph
  const proof = (await transactions.raw(outpoint.txid))?.proof
  const index = proof && indexOf(outpoint.txid, proof)
  const satoshis = sats === 'true' ? await valueIn(outpoint, graph) : undefined
  const spender = spend === 'true' ? await transactions.spenderOf(outpoint) : undefined
  return {
    outpoint: formatOutpoint(outpoint),
    score: proof === undefined ? score / 1000 : proof.height + (index ?? 0) / 1e9,
    ...(satoshis !== undefined && { satoshis }),
    ...(block === 'true' && proof && { blockHeight: proof.height }),
    ...(block === 'true' && index !== undefined && { blockIdx: index }),
    ...(spender !== undefined && { spend: spender }),
  }
}

/** Nodes and advertisements are near the front of their transactions; an ordinal may be anywhere, and has a record. */
const NEAR_FRONT = { longest: 16 * 1024 * 1024, chunks: 128 }

/** The value of an output in satoshis. */
async function valueIn(
  outpoint: Outpoint,
  { ordinals, transactions }: GraphStore,
): Promise<number | undefined> {
  const record = (await ordinals.output(outpoint)) ?? (await storedOutput(outpoint, transactions, NEAR_FRONT))
  return record?.satoshis
}

/** The place of a transaction in its block. */
function indexOf(txid: string, { merklePath }: Proof): number | undefined {
  const hash = reversed(fromHex(txid))
  const { levels } = readBump(merklePath, (message) => new Error(message))
  for (const [offset, node] of levels[0] ?? [])
    if (node.hash !== undefined && equalBytes(node.hash, hash)) return offset
  return undefined
}

export const TXO_OPERATIONS: OperationGroup = {
  tag: 'transactions',
  errors: {
    BAD_OUTPOINT: 'The path has no outpoint.',
    NOT_FOUND: 'No topic of this host holds the output.',
    BLOCKED: 'The operator has blocked it.',
    ...STORE_ERRORS,
  },
  operations: {
    output: {
      route: 'GET /{outpoint}',
      summary: 'Where an output is in the chain, and what spends it',
      params: z.object({ outpoint: askedOutpoint }),
      query: outputQuery,
      answer: { description: 'The output, with the fields that were asked for.', json: outputShape },
      errors: { BAD_BODY: 'A parameter is neither `true` nor `false`.' },
    },
    spend: {
      route: 'GET /{outpoint}/spend',
      summary: 'What spends an output',
      params: z.object({ outpoint: askedOutpoint }),
      answer: { description: 'The transaction, as far as this host knows.', json: spendShape },
    },
  },
}
