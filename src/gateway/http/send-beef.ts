import { createHash } from 'node:crypto'
import type { Request, Response } from 'express'
import {
  type ListedBeef,
  type ListedTransaction,
  listedBeef,
  outpointBeef,
} from '../../../backend/src/graph/write-beef.js'
import { yieldToEventLoop } from '../../../backend/src/graph/yield-to-event-loop.js'
import { UNTYPED } from '../../../backend/src/protocol/media-type.js'
import type { Outpoint } from '../../../backend/src/protocol/outpoint.js'
import type { Transactions } from '../../../backend/src/read/transactions.js'
import { CACHE, endedByPrecondition, entityTag } from './caching.js'
import { AnswerError } from './errors.js'
import { setSecurityHeaders } from './security-headers.js'
import { sendChunks } from './send-body.js'

/** A BEEF that is ready to send, with its entity tag. */
export interface BeefAnswer {
  body: Pick<ListedBeef, 'length' | 'held' | 'bytes'>
  tag: string
}

/** Prepares the Outpoint BEEF (BRC-158) of stored transactions, listed parents first. */
export async function outpointBeefAnswer(options: {
  subject: Outpoint
  transactions: ListedTransaction[]
  store: Transactions
}): Promise<BeefAnswer> {
  const body = await outpointBeef(options)
  return { body, tag: await tagOf(body, options.transactions) }
}

/** Prepares the BEEF (BRC-62) of stored transactions, listed parents first. */
export async function beefAnswer(options: {
  transactions: ListedTransaction[]
  store: Transactions
}): Promise<BeefAnswer> {
  const body = await listedBeef(options)
  return { body, tag: await tagOf(body, options.transactions) }
}

/** Sends either. @param options.cache Its `Cache-Control`; by default, it is revalidated each time. */
export async function sendBeef(options: {
  request: Request
  response: Response
  answer: BeefAnswer
  cache?: string
}): Promise<void> {
  const { request, response, answer, cache = CACHE.revalidate } = options
  const { body, tag } = answer
  setSecurityHeaders(response, { active: false })
  response.set({ 'Cache-Control': cache, ETag: tag })
  if (endedByPrecondition({ request, response, tag })) return
  response.setHeader('Content-Type', UNTYPED)
  response.setHeader('Content-Length', body.length)
  if (request.method === 'HEAD') {
    response.end()
    return
  }
  await sendChunks(response, { chunks: body.bytes(), length: body.length, held: body.held })
}

const HASHED_PER_SLICE = 2000

/** Hashes what the body is made of: its head, and the txids of its transactions. */
async function tagOf({ head }: ListedBeef, transactions: { txid: string }[]): Promise<string> {
  const hash = createHash('sha256')
  let hashed = 0
  for (const part of [...head, ...transactions.map(({ txid }) => txid)]) {
    hash.update(part)
    if (++hashed % HASHED_PER_SLICE === 0) await yieldToEventLoop()
  }
  return entityTag(hash.digest('hex'), UNTYPED)
}

/** A partial proof would prove nothing. */
export function incompleteProof({ txid }: { txid: string }): AnswerError {
  return new AnswerError('NOT_FOUND', `the proof is incomplete: this store cannot continue it from ${txid}`)
}
