import type { RequestHandler, Response } from 'express'
import { z } from 'zod'
import { unlessBlocked } from '../../../backend/src/graph/blocklist.js'
import type { AdmissionRecord, Proof } from '../../../backend/src/graph/records.js'
import { farOutput, readOutline } from '../../../backend/src/graph/stored-transaction.js'
import { equalBytes, fromHex, reversed } from '../../../backend/src/protocol/bytes.js'
import { readBump } from '../../../backend/src/protocol/merkle-path.js'
import { formatOutpoint, type Outpoint, parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import type { FactStore } from '../../../backend/src/read/fact-store.js'
import { CACHE } from '../http/caching.js'
import { AnswerError } from '../http/errors.js'
import type { GatewayParts } from '../http/gateway-parts.js'
import { jsonChunks } from '../http/json-chunks.js'
import { countTransactions } from '../http/long-read.js'
import { described, NOT_CAUGHT_UP, type Routes, STORE_ERRORS } from '../http/operation.js'
import {
  askedOutpoint,
  blockHeight,
  count,
  MAX_ASKED,
  outpoint,
  readTxid,
  txid,
  txidParams,
  validate,
  validateList,
} from '../http/schemas.js'
import { JSON_TYPE, sendChunks, sendJson } from '../http/send-body.js'
import { notCaughtUp } from '../http/tree-progress.js'

const flag = z.enum(['true', 'false']).default('false')
const outputQuery = z.object({
  sats: flag.describe('Whether to include the value.'),
  block: flag.describe('Whether to include the block height and index.'),
  spend: flag.default('true').describe('Whether to include the spending transaction.'),
})

/** `IndexedOutput` of `@1sat/types`. */
const outputShape = z.strictObject({
  outpoint,
  score: z
    .number()
    .describe(
      'A sort key: the height plus the index in the block in billionths. Unmined outputs sort above all heights, in order of admission.',
    ),
  satoshis: count.optional(),
  blockHeight: blockHeight.optional(),
  blockIdx: count.optional().describe('The index in the block; the coinbase is 0.'),
  spend: txid.optional().describe('The spending transaction. Absent if none is known here.'),
})
const spendShape = z.strictObject({
  spendTxid: txid.nullable().describe('The spending transaction. Null if none is known here.'),
})

const outputsBody = z.array(askedOutpoint).max(MAX_ASKED.records)
const spendsBody = z.array(askedOutpoint).max(MAX_ASKED.reads)
/** Room for 1,000 outpoints of at most 78 characters, with quotes and spaces. */
const MAX_LIST_BYTES = 256 * 1024

/**
 * Outputs that a topic holds, as requested by `TxoClient` of `@1sat/client`, below each of the prefixes. This host does not
 * know whether any other output is spent: alone it is not found, and in a list its entry is null.
 */
export function txoRoutes(options: GatewayParts): Routes {
  const { graph, bodies } = options
  const list = bodies.json({ limit: MAX_LIST_BYTES })
  return routes({
    outputsOfTransaction: sendOutputsOf(graph),
    output: sendOutput(graph),
    spend: sendSpend(options),
    outputs: [list, sendOutputs(options)],
    spends: [list, sendSpends(options)],
  })
}

type Handler = RequestHandler<{ outpoint: string }>

function sendOutput(graph: FactStore): Handler {
  return async ({ params, query }, response) => {
    const outpoint = parseOutpoint(params.outpoint)
    const record = await heldOutput(outpoint, { ...askedFields(query), graph })
    if (record === undefined) throw notHeld()
    response.set('Cache-Control', CACHE.revalidate)
    sendJson(response, record)
  }
}

function sendSpend({ graph, progress }: GatewayParts): Handler {
  return ({ params }, response) => {
    const outpoint = parseOutpoint(params.outpoint)
    const spendTxid = spendOfHeld(outpoint, graph)
    if (spendTxid === undefined) throw notHeld()
    // A host that follows the tree through this one would take the node for live.
    if (spendTxid === null && progress.isCatchingUp && graph.names.genuineNode(outpoint) !== undefined)
      throw notCaughtUp(progress.progress())
    response.set('Cache-Control', CACHE.revalidate)
    sendJson(response, { spendTxid } satisfies z.output<typeof spendShape>)
  }
}

/** In a list, blocked outputs and those that no topic holds are null. */
function sendOutputs({ graph }: GatewayParts): RequestHandler {
  return async ({ body, query }, response) => {
    const outpoints = listed(body, outputsBody)
    const asked = askedFields(query)
    await sendList(response, outpoints, async (outpoint) => {
      return (await unlessBlocked(() => heldOutput(outpoint, { ...asked, graph }))) ?? null
    })
  }
}

function sendSpends({ graph }: GatewayParts): RequestHandler {
  return async ({ body }, response) => {
    await sendList(response, listed(body, spendsBody), (outpoint) => {
      const spendTxid = unlessBlocked(() => spendOfHeld(outpoint, graph)) ?? null
      return { spendTxid } satisfies z.output<typeof spendShape>
    })
  }
}

/** The outputs of a transaction held by topics; none if the transaction has lost a conflict. */
function sendOutputsOf(graph: FactStore): RequestHandler<{ txid: string }> {
  return async ({ params, query }, response) => {
    const txid = readTxid(params)
    const asked = askedFields(query)
    const held = graph.admissions.ofTransaction(txid)
    const outpoints = new Map(held.map(({ outpoint }) => [outpoint.vout, outpoint]))
    const values =
      asked.sats === 'true' && held.length > 0 ? await readOutline(txid, graph.transactions) : undefined
    await sendList(response, [...outpoints.values()], (outpoint) =>
      unlessBlocked(() => heldOutput(outpoint, { ...asked, graph, values: values?.outputValues })),
    )
  }
}

/** @throws AnswerError, PointerError */
function listed(body: unknown, list: typeof outputsBody): Outpoint[] {
  return validateList(list, body, 'the body must be a JSON array of outpoints').map(parseOutpoint)
}

/** Lists up to this length are sent with a Content-Length. */
const FEW_OUTPUTS = 200

/** Reads each output in order, and sends the results as an array; leaves out undefined ones. */
async function sendList(
  response: Response,
  outpoints: readonly Outpoint[],
  read: (outpoint: Outpoint) => unknown,
): Promise<void> {
  countTransactions(response, outpoints.length)
  response.set({ 'Cache-Control': CACHE.revalidate, 'Content-Type': JSON_TYPE })
  const chunks = jsonChunks(outpoints, '[]', async (outpoint) => {
    const item = await read(outpoint)
    return item === undefined ? undefined : JSON.stringify(item)
  })
  if (outpoints.length > FEW_OUTPUTS) {
    await sendChunks(response, { chunks })
    return
  }
  let body = ''
  for await (const chunk of chunks) body += chunk
  response.setHeader('Content-Length', Buffer.byteLength(body))
  response.end(body)
}

function askedFields(query: unknown): z.output<typeof outputQuery> {
  return validate(outputQuery, query, 'sats, block and spend must be true or false')
}

/**
 * The record of an output that a topic holds; undefined if none does.
 *
 * @throws BlockedError
 */
async function heldOutput(outpoint: Outpoint, asked: RecordOptions): Promise<OutputRecord | undefined> {
  const { graph } = asked
  graph.served.guard.refuse([outpoint])
  const admission = admissionOf(outpoint, graph)
  if (admission === undefined) return undefined
  const satoshis = asked.sats === 'true' ? await valueIn(outpoint, asked) : undefined
  return graph.consistent(() => recordOf(admission, asked, satoshis))
}

/**
 * The spender of an output that a topic holds: null if this host knows none, undefined if no topic holds the output.
 *
 * @throws BlockedError
 */
function spendOfHeld(outpoint: Outpoint, graph: FactStore): string | null | undefined {
  graph.served.guard.refuse([outpoint])
  return graph.consistent(() => {
    if (admissionOf(outpoint, graph) === undefined) return undefined
    return graph.transactions.spenderOf(outpoint) ?? null
  })
}

function notHeld(): AnswerError {
  return new AnswerError('NOT_FOUND', 'no topic of this host holds this output')
}

/** The first admission of an output; undefined if no topic holds it, or its transaction is inactive. */
function admissionOf(outpoint: Outpoint, graph: FactStore): AdmissionRecord | undefined {
  const [admission, ...others] = graph.admissions.of(outpoint)
  if (admission === undefined || graph.transactions.reasonAgainst(outpoint.txid) !== undefined)
    return undefined
  return others.reduce((first, each) => (each.score < first.score ? each : first), admission)
}

type OutputRecord = z.output<typeof outputShape>

interface RecordOptions extends z.output<typeof outputQuery> {
  graph: FactStore
  /** The values of all outputs of the transaction, if the caller has them. */
  values?: readonly number[] | undefined
}

function recordOf(
  { outpoint, score }: AdmissionRecord,
  { graph, block, spend }: RecordOptions,
  satoshis: number | undefined,
): OutputRecord {
  const { transactions, admissions } = graph
  const proof = transactions.raw(outpoint.txid)?.proof
  const index = proof && indexOf(outpoint.txid, proof)
  const spender = spend === 'true' ? transactions.spenderOf(outpoint) : undefined
  return {
    outpoint: formatOutpoint(outpoint),
    score: proof === undefined ? score / admissions.scoresPerMs / 1000 : proof.height + (index ?? 0) / 1e9,
    ...(satoshis !== undefined && { satoshis }),
    ...(block === 'true' && proof && { blockHeight: proof.height }),
    ...(block === 'true' && index !== undefined && { blockIdx: index }),
    ...(spender !== undefined && { spend: spender }),
  }
}

/** Bounds for reading nodes and advertisements, which are near the front of transactions. Ordinals have records. */
const NEAR_FRONT = { longest: 16 * 1024 * 1024, chunks: 128 }

async function valueIn(
  outpoint: Outpoint,
  { values, graph: { ordinals, transactions } }: RecordOptions,
): Promise<number | undefined> {
  const known = values?.[outpoint.vout] ?? ordinals.output(outpoint)?.satoshis
  return known ?? (await farOutput(outpoint, transactions, NEAR_FRONT))?.satoshis
}

function indexOf(txid: string, { merklePath }: Proof): number | undefined {
  const hash = reversed(fromHex(txid))
  const { levels } = readBump(merklePath, (message) => new Error(message))
  for (const [offset, node] of levels[0] ?? [])
    if (node.hash !== undefined && equalBytes(node.hash, hash)) return offset
  return undefined
}

const ALONE = {
  BAD_OUTPOINT: 'The path does not have an outpoint.',
  NOT_FOUND: 'No topic of this host holds the output.',
  BLOCKED: 'The operator has blocked the output.',
}

const routes = described({
  tag: 'transactions',
  errors: STORE_ERRORS,
  operations: {
    outputsOfTransaction: {
      route: 'GET /tx/{txid}',
      summary: 'The outputs of a transaction held by topics',
      params: txidParams,
      query: outputQuery,
      answer: {
        description: 'The outputs that are not blocked. Empty if the transaction lost to a conflicting one.',
        json: z.array(outputShape),
      },
      errors: {
        BAD_BODY: 'A parameter is neither `true` nor `false`.',
        BAD_OUTPOINT: 'The path does not have a txid.',
      },
    },
    output: {
      route: 'GET /{outpoint}',
      summary: 'The position of an output in the chain, and its spending transaction',
      params: z.object({ outpoint: askedOutpoint }),
      query: outputQuery,
      answer: { description: 'The output with the requested fields.', json: outputShape },
      errors: { ...ALONE, BAD_BODY: 'A parameter is neither `true` nor `false`.' },
    },
    spend: {
      route: 'GET /{outpoint}/spend',
      summary: 'The spending transaction of an output',
      params: z.object({ outpoint: askedOutpoint }),
      answer: { description: 'The spending transaction, if known here.', json: spendShape },
      errors: { ...ALONE, NOT_CAUGHT_UP },
    },
    outputs: {
      route: 'POST /outpoints',
      summary: 'The positions of outputs in the chain, and their spending transactions',
      query: outputQuery,
      body: { description: 'At most 100 outpoints.', json: outputsBody },
      answer: {
        description:
          'The outputs with the requested fields, in the order of the outpoints. Null if no topic holds the output, or it is blocked.',
        json: z.array(outputShape.nullable()),
      },
      errors: {
        BAD_BODY: 'The body is not a JSON array of strings, or a parameter is neither `true` nor `false`.',
        BAD_OUTPOINT: 'A string is not an outpoint; the error quotes it.',
        TOO_LARGE: 'More than 100 outpoints.',
      },
    },
    spends: {
      route: 'POST /spends',
      summary: 'The spending transactions of outputs',
      body: { description: 'At most 1,000 outpoints.', json: spendsBody },
      answer: {
        description:
          'The spending transactions, in the order of the outpoints. Null if none is known here, or no topic holds the output.',
        json: z.array(spendShape),
      },
      errors: {
        BAD_BODY: 'The body is not a JSON array of strings.',
        BAD_OUTPOINT: 'A string is not an outpoint; the error quotes it.',
        TOO_LARGE: 'More than 1,000 outpoints, or a body over 256 KiB.',
      },
    },
  },
})
