import type { RequestHandler, Response } from 'express'
import type { RawTransaction } from '../../../backend/src/graph/stored-transaction.js'
import { UNTYPED } from '../../../backend/src/protocol/media-type.js'
import type { FactStore } from '../../../backend/src/read/fact-store.js'
import { Collection } from '../../../backend/src/read/provenance.js'
import { CACHE } from '../http/caching.js'
import { AnswerError } from '../http/errors.js'
import { countTransactions, longRead } from '../http/long-read.js'
import { BYTES_HEADERS, described, type Routes, STORE_ERRORS } from '../http/operation.js'
import { readTxid, txidParams } from '../http/schemas.js'
import { beefAnswer, sendBeef } from '../http/send-beef.js'
import { bytesRepresentation, sendChunks, sendHead } from '../http/send-body.js'
import { bytesResponse, sendStored } from '../http/stored-response.js'

/**
 * Transactions with an admitted output by txid, as requested by `BeefClient` of `@1sat/client`, below each of the prefixes: with
 * their ancestors, alone, and their merkle paths.
 *
 * A transaction that has lost a conflict is not served. Neither is one with a blocked output, as its bytes contain all outputs; as an
 * ancestor of another, it is evidence (`docs/operating.md`, Blocking).
 */
export function beefRoutes(graph: FactStore): Routes {
  return routes({
    transactionBeef: sendWithAncestors(graph),
    transactionBytes: sendAlone(graph),
    transactionProof: sendProof(graph),
  })
}

function sendWithAncestors(graph: FactStore): RequestHandler {
  return async (request, response) => {
    const { txid } = await askedTransaction(request.params, { graph, response })
    const answer = await longRead(response, async (pace) => {
      const collection = new Collection(graph.transactions, pace)
      await collection.addAncestry(txid)
      const transactions = await collection.parentsFirst()
      countTransactions(response, transactions.length)
      return await beefAnswer({ transactions, store: graph.transactions })
    })
    await sendBeef({ request, response, answer })
  }
}

function sendAlone(graph: FactStore): RequestHandler {
  return async (request, response) => {
    const { length, chunks } = await askedTransaction(request.params, { graph, response })
    const representation = bytesRepresentation({ cache: CACHE.immutable, length })
    if (sendHead({ request, response, representation }) !== undefined)
      await sendChunks(response, { chunks: bytesOf(chunks()), length })
  }
}

function* bytesOf(chunks: ReturnType<RawTransaction['chunks']>): Generator<Uint8Array> {
  for (const { bytes } of chunks) yield bytes
}

function sendProof(graph: FactStore): RequestHandler {
  return async (request, response) => {
    const { proof } = await askedTransaction(request.params, { graph, response })
    if (proof === undefined)
      throw new AnswerError('NOT_FOUND', 'this host has no proof that the transaction is mined')
    // A reorganisation may remove a proof.
    const stored = bytesResponse(Buffer.from(proof.merklePath), { cache: CACHE.revalidate })
    await sendStored({ request, response, stored })
  }
}

interface Asked {
  graph: FactStore
  response: Response
}

/**
 * The transaction that a path names.
 *
 * @throws AnswerError if the path has no txid, no topic holds an output of the transaction, or it has lost a conflict; BlockedError
 * if one of its outputs is blocked.
 */
export async function askedTransaction(params: unknown, { graph, response }: Asked): Promise<RawTransaction> {
  const txid = readTxid(params)
  // This host does not publish what strangers store outside of the topics.
  const held = graph.admissions.ofTransaction(txid)
  const transaction = held.length === 0 ? undefined : graph.transactions.raw(txid)
  if (transaction === undefined || graph.transactions.reasonAgainst(txid) !== undefined)
    throw new AnswerError('NOT_FOUND', 'this host does not have this transaction')
  const { guard } = graph.served
  // Contents are known only for outputs that a topic holds; checking them takes a read each if any content is blocked.
  if (guard.list.hasAny('content')) countTransactions(response, held.length)
  await guard.refuseTransaction(txid)
  return transaction
}

const routes = described({
  tag: 'transactions',
  errors: {
    BAD_OUTPOINT: 'The path does not have a txid.',
    NOT_FOUND: 'This host does not have the transaction, or the transaction lost to a conflicting one.',
    BLOCKED: 'The operator has blocked one of its outputs.',
    ...STORE_ERRORS,
  },
  operations: {
    transactionBeef: {
      route: 'GET /{txid}',
      summary: 'A transaction with its ancestors down to mined ones',
      params: txidParams,
      answer: {
        description: 'A BEEF (BRC-62) that ends with the transaction, with the ancestors that this host has.',
        headers: [...BYTES_HEADERS, 'ETag'],
        types: [UNTYPED],
      },
    },
    transactionBytes: {
      route: 'GET /{txid}/tx',
      summary: 'The bytes of a transaction',
      params: txidParams,
      answer: { description: 'The transaction.', headers: BYTES_HEADERS, types: [UNTYPED] },
    },
    transactionProof: {
      route: 'GET /{txid}/proof',
      summary: 'The merkle path of a mined transaction',
      params: txidParams,
      answer: {
        description:
          'A merkle path (BUMP, BRC-74), checked against block headers if the host has a source of them.',
        headers: [...BYTES_HEADERS, 'ETag'],
        types: [UNTYPED],
      },
      errors: { NOT_FOUND: 'This host does not have the transaction, or no proof that it is mined.' },
    },
  },
})
