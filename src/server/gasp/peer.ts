import { setTimeout } from 'node:timers/promises'
import type { z } from 'zod'
import { nativeHash256 } from '../../../backend/src/graph/native-hash.js'
import { readProof } from '../../../backend/src/graph/read-proof.js'
import type { Proof } from '../../../backend/src/graph/records.js'
import type { Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { outputOf, readTransaction, type TransactionView } from '../../../backend/src/protocol/transaction.js'
import { fetchBounded } from '../../client/bounded-fetch.js'
import type { SourceError } from '../../client/errors.js'
import { BadGraphError, PeerAwayError, UnwantedGraphError } from './sync-errors.js'
import {
  formatGaspOutpoint,
  GASP_VERSION,
  gaspNode,
  type OfferedOutput,
  syncResponse,
} from './sync-messages.js'

/** The longest list of outputs that is read, in bytes: a hundred thousand of them. */
const MAX_LIST_BYTES = 16 * 1024 * 1024
/** What a node has beside its transaction: a merkle path, and metadata that nobody here asks for. */
const MAX_NODE_REST = 256 * 1024
/** How long a peer that is asked too much is waited for at the most, in milliseconds, and how often. */
const MAX_WAIT = 60_000
const MAX_WAITS = 10

/** A transaction as a peer gives it: its hash is what was asked for, and its path, if any, leads from it to a root. */
export interface PeerTransaction {
  view: TransactionView
  proof?: Proof
}

export interface PeerOptions {
  url: string
  /** For one answer, in milliseconds, to its last byte. */
  timeout: number
  /** The longest transaction that is read, in bytes. */
  maxBytes: number
}

/** Another host, asked over HTTP in the form that overlay hosts have for it. Nothing that it says is believed here. */
export class Peer {
  constructor(private readonly options: PeerOptions) {}

  /**
   * The unspent outputs of a topic from a score on.
   *
   * @throws PeerAwayError where there is no answer, or none in the form of one.
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
    const told = parsed(syncResponse, answer.body)
    if (told === undefined) throw new PeerAwayError(`the peer returned no valid list of outputs for ${topic}`)
    return told.UTXOList
  }

  /**
   * The transaction of an output in a graph; undefined where the peer does not have it.
   *
   * @throws PeerAwayError where there is no answer; BadGraphError where it is no transaction, or another one;
   * UnwantedGraphError where it is longer than one may be.
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
    // Hosts say in many ways that they do not have something, and in one that they cannot be asked now.
    if (answer.status >= 400 && answer.status < 500) return undefined
    const told = parsed(gaspNode, answer.body)
    if (told === undefined) throw new BadGraphError(`the peer returned no valid graph node for ${txid}`)
    if (told.graphID !== graphID || told.outputIndex !== outputIndex)
      throw new BadGraphError(`asked for ${txid}, the peer returned a node of another graph`)
    return readNode(txid, told)
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
      if (waits === MAX_WAITS) throw new PeerAwayError('the peer kept answering 429 despite waits')
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
      // Whoever does not want to hear any more says why.
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
    // No JSON is of no form, either; the caller says so.
    return undefined
  }
}

function readNode(txid: string, told: z.output<typeof gaspNode>): PeerTransaction {
  const { outputIndex, rawTx, proof } = told
  const view = soundly(`the transaction that the peer returned for ${txid} cannot be read`, () =>
    readTransaction(bytesOf(rawTx), { hash: nativeHash256 }),
  )
  if (view.txid !== txid) throw new BadGraphError(`asked for ${txid}, the peer returned ${view.txid}`)
  if (outputOf(view, outputIndex) === undefined)
    throw new BadGraphError(`${txid} has no output ${outputIndex}, but the peer returned a graph node for it`)
  if (proof == null) return { view }
  const held = soundly(`the merkle path of ${txid} is invalid`, () =>
    readProof({ txid, bump: bytesOf(proof) }),
  )
  return { view, proof: held }
}

function soundly<Result>(message: string, read: () => Result): Result {
  try {
    return read()
  } catch (cause) {
    throw new BadGraphError(message, { cause })
  }
}

/** As fast as a transaction is long. @throws RangeError where it is no hex. */
function bytesOf(hex: string): Uint8Array {
  const { buffer, byteOffset, length } = Buffer.from(hex, 'hex')
  if (2 * length !== hex.length) throw new RangeError('must be hex of even length')
  return new Uint8Array(buffer, byteOffset, length)
}
