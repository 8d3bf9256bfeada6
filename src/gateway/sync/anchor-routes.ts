import type { RequestHandler, Response } from 'express'
import { z } from 'zod'
import { unlessBlocked } from '../../../backend/src/graph/blocklist.js'
import { mergedPath } from '../../../backend/src/graph/write-beef.js'
import { yieldToEventLoop } from '../../../backend/src/graph/yield-to-event-loop.js'
import { toHex } from '../../../backend/src/protocol/bytes.js'
import { TOPICS } from '../../../backend/src/protocol/profile.js'
import { NO_HASH } from '../../../backend/src/protocol/topic-anchors.js'
import type { AdmittedInBlock, Anchor } from '../../../backend/src/read/anchors.js'
import type { FactStore } from '../../../backend/src/read/fact-store.js'
import { AnswerError } from '../http/errors.js'
import { hexChunks } from '../http/hex-chunks.js'
import { whenOpened } from '../http/long-read.js'
import { described, type Routes, STORE_ERRORS } from '../http/operation.js'
import { txid, validate } from '../http/schemas.js'
import { sendChunks } from '../http/send-body.js'
import { writtenHex } from './sync-messages.js'
import type { SyncRoutesOptions } from './sync-routes.js'

/** The most blocks of a range, and the most transactions of one request: as many as the engines ask for. */
const MAX_BLOCKS = 1024
const MAX_TXIDS = 1000
/** Of the transactions of one answer. */
const MAX_RAW_BYTES = 32 * 1024 * 1024
/** A thousand txids as JSON. */
const MAX_BODY_BYTES = 128 * 1024

/**
 * The routes for peers that compare what they have of each block (BASM, BRC-136), and fetch what they lack. `tm_ordinals` has no anchors:
 * which ordinals a host has depends on what it was sent.
 */
export function anchorRoutes({ graph, bodies, topicOf }: SyncRoutesOptions): Routes {
  const { anchors } = graph
  const before = [...whenOpened(graph), bodies.json({ limit: MAX_BODY_BYTES })]
  const readTopic = (name = ''): string => {
    if (topicOf(name) !== TOPICS.names)
      throw new AnswerError(
        'BAD_BODY',
        `the header x-bsv-topic must be ${TOPICS.names}: no other topic has anchors`,
      )
    return name
  }
  const topicAnchorTip: RequestHandler = async (request, response) => {
    const topic = readTopic(request.get('x-bsv-topic'))
    validate(tipRequest, request.body, 'the body must be {}')
    response.json(written(topic, (await anchors.tip()) ?? NOTHING))
  }
  const topicAnchorRange: RequestHandler = async (request, response) => {
    const topic = readTopic(request.get('x-bsv-topic'))
    const message = `the body must be {"fromHeight": <number>, "toHeight": <number>}, with ${MAX_BLOCKS} blocks at most`
    const { fromHeight: from, toHeight: to } = validate(rangeRequest, request.body, message)
    const range = await anchors.range({ from, to })
    response.json({ topic, anchors: range.map((anchor) => written(topic, anchor)) })
  }
  const admittedList: RequestHandler = async (request, response) => {
    const topic = readTopic(request.get('x-bsv-topic'))
    const message = 'the body must be {"blockHeight": <number>}, and may have the "blockHash"'
    const { blockHeight, blockHash } = validate(listRequest, request.body, message)
    const [anchor] = await anchors.range({ from: blockHeight, to: blockHeight })
    if (anchor === undefined || (blockHash ?? anchor.hash) !== anchor.hash)
      throw new AnswerError('NOT_FOUND', 'this host does not have this block')
    const admitted = (await anchors.admitted(blockHeight)).map(({ txid, index }) => ({
      txid,
      blockIndex: index,
    }))
    response.json({ topic, blockHeight, blockHash: anchor.hash, admitted })
  }
  const compoundMerklePath: RequestHandler = async (request, response) => {
    const topic = readTopic(request.get('x-bsv-topic'))
    const message = `the body must be {"blockHeight": <number>, "txids": ["<hex>"]}, with 1 to ${MAX_TXIDS} txids, each once`
    const { blockHeight, txids } = validate(pathRequest, request.body, message)
    const admitted = new Map((await anchors.admitted(blockHeight)).map((each) => [each.txid, each]))
    const asked = txids.map((each) => admitted.get(each))
    if (!asked.every((each): each is AdmittedInBlock => each !== undefined))
      throw new AnswerError('NOT_FOUND', 'the topic did not admit all of these transactions of this block')
    const path = mergedPath(asked.map(({ merklePath }) => merklePath))
    response.json({ topic, blockHeight, txids, merklePath: toHex(path) })
  }
  const rawTransactions: RequestHandler = async (request, response) => {
    const message = `the body must be {"txids": ["<hex>"]}, with 1 to ${MAX_TXIDS} txids, each once`
    await sendTransactions(response, graph, validate(transactionsRequest, request.body, message).txids)
  }
  return routes({
    topicAnchorTip: [...before, topicAnchorTip],
    topicAnchorRange: [...before, topicAnchorRange],
    admittedList: [...before, admittedList],
    compoundMerklePath: [...before, compoundMerklePath],
    rawTransactions: [...before, rawTransactions],
  })
}

const ZEROS = toHex(NO_HASH)
const NOTHING: Anchor = { height: -1, hash: ZEROS, root: ZEROS, count: 0, tac: ZEROS }

function written(topic: string, { height, hash, root, count, tac }: Anchor): z.output<typeof anchor> {
  return { topic, blockHeight: height, blockHash: hash, basmRoot: root, admittedCount: count, tac }
}

/** Sent in chunks, as there may be many, and hex makes each twice as long. */
async function sendTransactions(response: Response, graph: FactStore, txids: string[]): Promise<void> {
  const found = new Map<string, Iterable<{ bytes: Uint8Array }>>()
  let bytes = 0
  for (const each of txids) {
    const transaction = graph.anchors.isAdmitted(each) ? graph.transactions.raw(each) : undefined
    if (transaction === undefined) continue
    const { served } = graph
    const chunks = await unlessBlocked(async () => {
      await served.guard.refuseTransaction(each)
      return transaction.chunks()
    })
    if (chunks === undefined) continue
    bytes += transaction.length
    if (bytes > MAX_RAW_BYTES)
      throw new AnswerError('TOO_LARGE', `these transactions have over ${MAX_RAW_BYTES} bytes; ask for fewer`)
    found.set(each, chunks)
    await yieldToEventLoop()
  }
  const missing = txids.filter((each) => !found.has(each))
  const [head, tail] = ['{"transactions":[', `],"missing":${JSON.stringify(missing)}}`]
  const begins = [...found.keys()].map((each, at) => `${at === 0 ? '' : ','}{"txid":"${each}","rawTx":"`)
  const end = '"}'
  const texts = [head, ...begins, ...begins.map(() => end), tail]
  const length = texts.reduce((sum, text) => sum + text.length, 2 * bytes)
  response.type('json').set('Content-Length', String(length))
  const chunks = function* (): Generator<string> {
    yield head
    for (const [at, each] of [...found.values()].entries()) {
      yield begins[at] ?? ''
      yield* hexChunks(each)
      yield end
    }
    yield tail
  }
  await sendChunks(response, { chunks: chunks(), length })
}

const height = z.int().nonnegative()
const hash = txid
const topic = z.string().describe('The topic, as in the request.')
const anchor = z
  .strictObject({
    topic,
    blockHeight: height,
    blockHash: hash,
    basmRoot: hash.describe('The root over what was admitted of this block; zeros if nothing was.'),
    admittedCount: height,
    tac: hash.describe('The hash over all blocks from the first of the topic up to this one.'),
  })
  .meta({
    id: 'TopicAnchor',
    description: 'What a topic admitted of a block (BASM, BRC-136). Hashes are in display order.',
  })
const txids = z
  .array(txid)
  .min(1)
  .max(MAX_TXIDS)
  .refine((each) => new Set(each).size === each.length)
  .meta({ uniqueItems: true })

const tipRequest = z.object({})
const rangeRequest = z
  .object({ fromHeight: height, toHeight: height })
  .refine(({ fromHeight, toHeight }) => toHeight >= fromHeight && toHeight - fromHeight < MAX_BLOCKS)
const listRequest = z.object({ blockHeight: height, blockHash: hash.optional() })
const pathRequest = z.object({ blockHeight: height, txids })
const transactionsRequest = z.object({ txids })

const headers = z.object({ 'x-bsv-topic': z.string().describe('`tm_names`.') })
const BAD_BODY = 'The topic has no anchors, or the body is malformed.'

const routes = described({
  tag: 'overlay',
  errors: { BAD_BODY, TOO_LARGE: 'The body is over 128 KiB.', ...STORE_ERRORS },
  operations: {
    topicAnchorTip: {
      route: 'POST /requestTopicAnchorTip',
      summary: 'The anchor of the last block, for a peer that compares (BRC-136)',
      headers,
      body: { description: 'Nothing is asked.', json: tipRequest },
      answer: {
        description:
          'The anchor; with height -1 and zeros if this host keeps no block headers, or not from the block of the genesis on.',
        json: anchor.extend({ blockHeight: z.int().min(-1) }),
      },
    },
    topicAnchorRange: {
      route: 'POST /requestTopicAnchorRange',
      summary: 'The anchors of some blocks',
      headers,
      body: { description: 'The first and the last block.', json: rangeRequest },
      answer: {
        description: 'The anchors by height, as far as there are any.',
        json: z.strictObject({ topic, anchors: z.array(anchor) }),
      },
    },
    admittedList: {
      route: 'POST /requestAdmittedList',
      summary: 'What a topic admitted of a block',
      headers,
      body: { description: 'The block.', json: listRequest },
      answer: {
        description: 'The admitted transactions, in the order of the block.',
        json: z.strictObject({
          ...{ topic, blockHeight: height, blockHash: hash },
          admitted: z.array(z.strictObject({ txid, blockIndex: height })),
        }),
      },
      errors: { NOT_FOUND: 'This host does not have this block.' },
    },
    compoundMerklePath: {
      route: 'POST /requestCompoundMerklePath',
      summary: 'One merkle path for admitted transactions of a block',
      headers,
      body: { description: 'The block, and up to 1,000 transactions.', json: pathRequest },
      answer: {
        description: 'The merkle path (BUMP, BRC-74) as hex.',
        json: z.strictObject({ topic, blockHeight: height, txids: z.array(txid), merklePath: writtenHex }),
      },
      errors: { NOT_FOUND: 'The topic did not admit all of these transactions of this block.' },
    },
    rawTransactions: {
      route: 'POST /requestRawTransactions',
      summary: 'Admitted transactions, without their ancestors',
      body: { description: 'Up to 1,000 transactions.', json: transactionsRequest },
      answer: {
        description:
          'Each is in one of the lists. Missing are also those of which the operator has blocked an output.',
        headers: ['Content-Length'],
        json: z.strictObject({
          transactions: z.array(z.strictObject({ txid, rawTx: writtenHex })),
          missing: z.array(txid),
        }),
      },
      errors: {
        BAD_BODY: 'The body is malformed.',
        TOO_LARGE: 'The body is over 128 KiB, or the transactions over 32 MiB.',
      },
    },
  },
})
