import { setTimeout } from 'node:timers/promises'
import type { z } from 'zod'
import { nativeHash256 } from '../../../backend/src/graph/native-hash.js'
import { readProof } from '../../../backend/src/graph/read-beef.js'
import type { Proof } from '../../../backend/src/graph/records.js'
import { CodedError } from '../../../backend/src/protocol/coded-error.js'
import type { Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { outputOf, readTransaction, type TransactionView } from '../../../backend/src/protocol/transaction.js'
import { fetchBounded } from '../../client/bounded-fetch.js'
import type { SourceError } from '../../client/errors.js'
import {
  formatGaspOutpoint,
  GASP_VERSION,
  gaspNode,
  type OfferedOutput,
  syncResponse,
} from './sync-messages.js'

/** A peer that is unavailable: it would not answer the next request either. */
export class PeerAwayError extends CodedError {
  override readonly name = 'PeerAwayError'
  readonly code = 'PEER_AWAY'
}

/** A graph that a peer sent is invalid. Its other graphs may be fine. */
export class BadGraphError extends CodedError {
  override readonly name = 'BadGraphError'
  readonly code = 'BAD_GRAPH'
}

/** A graph that may be valid, but that this host does not take: it exceeds a limit, or belongs to no topic here. */
export class UnwantedGraphError extends CodedError {
  override readonly name = 'UnwantedGraphError'
  readonly code = 'UNWANTED_GRAPH'
}

/** The longest list of outputs that is read, in bytes: a hundred thousand outputs. */
const MAX_LIST_BYTES = 16 * 1024 * 1024
/** What a node has beside its transaction, in bytes: a merkle path, and metadata that is not requested. */
const MAX_NODE_REST = 256 * 1024
/** How long this host waits when a peer limits its rate, in milliseconds, and how often. */
const MAX_WAIT = 60_000
const MAX_WAITS = 10

/** A transaction from a peer: it has the requested txid, and its path, if any, leads from it to a root. */
export interface PeerTransaction {
  view: TransactionView
  proof?: Proof
}

export interface PeerOptions {
  url: string
  /** For one response up to its last byte, in milliseconds. */
  timeout: number
  /** The longest transaction that is read, in bytes. */
  maxBytes: number
}

/** Another host, over the HTTP API that overlay hosts have for GASP. Nothing that it says is believed. */
export class Peer {
  constructor(private readonly options: PeerOptions) {}

  /**
   * The unspent outputs of a topic from a score on.
   *
   * @throws PeerAwayError if there is no valid response.
   */
  async offered(
    { topic, ...asked }: { topic: string; since: number; limit: number },
    signal: AbortSignal,
  ): Promise<OfferedOutput[]> {
    const answer = await this.ask('/requestSyncResponse', {
      body: { version: GASP_VERSION, ...asked },
      headers: { 'x-bsv-topic': topic },
      maxBytes: MAX_LIST_BYTES,
      signal,
    })
    if (answer === 'too long' || answer.status !== 200)
      throw new PeerAwayError(`the peer does not list its outputs of ${topic}`)
    const response = parsed(syncResponse, answer.body)
    if (response === undefined)
      throw new PeerAwayError(`the peer returned no valid list of outputs for ${topic}`)
    return response.UTXOList
  }

  /**
   * The transaction of an output in a graph; undefined if the peer does not have it.
   *
   * @throws PeerAwayError if there is no response; BadGraphError if it is no transaction, or another one;
   * UnwantedGraphError if it is too long.
   */
  async node(
    { graph, outpoint }: { graph: Outpoint; outpoint: Outpoint },
    signal: AbortSignal,
  ): Promise<PeerTransaction | undefined> {
    const { txid, vout: outputIndex } = outpoint
    const graphID = formatGaspOutpoint(graph)
    const answer = await this.ask('/requestForeignGASPNode', {
      body: { graphID, txid, outputIndex, metadata: false },
      maxBytes: 2 * this.options.maxBytes + MAX_NODE_REST,
      signal,
    })
    if (answer === 'too long') throw new UnwantedGraphError(`${txid} exceeds the limit for a transaction`)
    // Hosts have many ways to say that they do not have something, and one to say that they are unavailable.
    if (answer.status >= 400 && answer.status < 500) return undefined
    const node = parsed(gaspNode, answer.body)
    if (node === undefined) throw new BadGraphError(`the peer returned no valid graph node for ${txid}`)
    if (node.graphID !== graphID || node.outputIndex !== outputIndex)
      throw new BadGraphError(`asked for ${txid}, the peer sends the node of another graph`)
    return readNode(txid, node)
  }

  private async ask(
    path: string,
    question: { body: unknown; headers?: Record<string, string>; maxBytes: number; signal: AbortSignal },
  ): Promise<PeerAnswer | 'too long'> {
    const { body, headers, maxBytes, signal } = question
    for (let waits = 0; ; waits++) {
      const answer = await this.post(path, {
        init: {
          method: 'POST',
          headers: { 'Content-Type': 'application/json', ...headers },
          body: JSON.stringify(body),
        },
        maxBytes,
        signal,
      })
      if (answer === 'too long') return answer
      if (answer.status >= 500) throw new PeerAwayError(`the peer answered ${path} with ${answer.status}`)
      if (answer.status !== 429) return answer
      if (waits === MAX_WAITS)
        throw new PeerAwayError('the peer limits the rate, however long this host waits')
      await setTimeout(Math.min(answer.retryAfter * 1000, MAX_WAIT), undefined, { signal, ref: false })
    }
  }

  private async post(
    path: string,
    { init, maxBytes, signal }: { init: RequestInit; maxBytes: number; signal: AbortSignal },
  ): Promise<PeerAnswer | 'too long'> {
    const { url, timeout } = this.options
    try {
      const bounds = { timeout, maxBytes, signal }
      const { status, headers, body } = await fetchBounded(url.replace(/\/+$/, '') + path, init, bounds)
      const retryAfter = Number(headers.get('retry-after') ?? 1)
      return { status, body, retryAfter: Number.isFinite(retryAfter) ? Math.max(retryAfter, 1) : 1 }
    } catch (cause) {
      signal.throwIfAborted()
      const { code } = cause as SourceError
      if (code === 'TOO_LARGE') return 'too long'
      const why = code === 'TIMEOUT' ? `did not respond within ${timeout} ms` : 'did not respond'
      throw new PeerAwayError(`the peer ${why}`, { cause })
    }
  }
}

interface PeerAnswer {
  status: number
  body: Uint8Array
  /** In seconds. */
  retryAfter: number
}

function parsed<Schema extends z.ZodType>(schema: Schema, body: Uint8Array): z.output<Schema> | undefined {
  try {
    return schema.safeParse(JSON.parse(Buffer.from(body).toString('utf8'))).data
  } catch {
    // The caller reports what is not JSON like any other invalid response.
    return undefined
  }
}

function readNode(txid: string, node: z.output<typeof gaspNode>): PeerTransaction {
  const { outputIndex, rawTx, proof } = node
  const view = valid(`the transaction that the peer sends for ${txid} cannot be read`, () =>
    readTransaction(bytesOf(rawTx), { hash: nativeHash256 }),
  )
  if (view.txid !== txid) throw new BadGraphError(`asked for ${txid}, the peer sends ${view.txid}`)
  if (outputOf(view, outputIndex) === undefined)
    throw new BadGraphError(`${txid} has no output ${outputIndex}, but the peer returned a graph node for it`)
  if (proof == null) return { view }
  const checked = valid(`the merkle path of ${txid} is invalid`, () =>
    readProof({ txid, bump: bytesOf(proof) }),
  )
  return { view, proof: checked }
}

function valid<Result>(message: string, read: () => Result): Result {
  try {
    return read()
  } catch (cause) {
    throw new BadGraphError(message, { cause })
  }
}

/** In linear time. @throws RangeError if it is not hex. */
function bytesOf(hex: string): Uint8Array {
  const { buffer, byteOffset, length } = Buffer.from(hex, 'hex')
  if (2 * length !== hex.length) throw new RangeError('must be hex of even length')
  return new Uint8Array(buffer, byteOffset, length)
}
