import { setTimeout } from 'node:timers/promises'
import type { z } from 'zod'
import { nativeHash256 } from '../../../backend/src/graph/native-hash.js'
import { readBeef, readProof } from '../../../backend/src/graph/read-beef.js'
import type { TransactionRecord } from '../../../backend/src/graph/records.js'
import { cacheView } from '../../../backend/src/graph/stored-transaction.js'
import { BeefError } from '../../../backend/src/protocol/beef.js'
import { GeneralError } from '../../../backend/src/protocol/coded-error.js'
import { formatOutpoint, type Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { LOOKUP_SERVICES, TOPICS } from '../../../backend/src/protocol/profile.js'
import { outputOf, readTransaction } from '../../../backend/src/protocol/transaction.js'
import { fetchBounded } from '../../client/bounded-fetch.js'
import type { SourceError } from '../../client/errors.js'
import type { AsOf } from '../../gateway/http/as-of.js'
import { asOf } from '../../gateway/http/schemas.js'
import {
  formatGaspOutpoint,
  GASP_VERSION,
  gaspNode,
  lookupResponse,
  NAME_OUTPUT,
  type OfferedOutput,
  syncResponse,
} from '../../gateway/sync/sync-messages.js'

/** Why an output that a peer offers is not taken. */
type PeerErrorCode =
  /** The peer is unavailable; another request would fail too. */
  | 'AWAY'
  /** A graph from the peer is invalid. Its other graphs may be fine. */
  | 'BAD_GRAPH'
  /** A graph lacks parts that the peer will have soon: the engine offers an output before its lookup services know it. */
  | 'NOT_YET'
  /** A graph may be valid, but this host does not take it: it exceeds a limit, or belongs to no topic here. */
  | 'UNWANTED'

export class PeerError extends GeneralError<PeerErrorCode> {
  override readonly name = 'PeerError'
}

/** The longest list of outputs to read, in bytes: a hundred thousand outputs. */
const MAX_LIST_BYTES = 16 * 1024 * 1024
/** The size of a node without its transaction, in bytes: a merkle path, and metadata that is not requested. */
const MAX_NODE_REST = 256 * 1024
/** The longest answer of a lookup service to read, in bytes: its BEEF is an array of decimal numbers. */
const MAX_LOOKUP_BYTES = 16 * 1024 * 1024
/** The status with which the engine of other hosts refuses whatever it cannot answer; our server has 404 and 451. */
const REFUSED = 400
/** The longest wait when a peer limits its rate, in milliseconds, and the most waits. */
const MAX_WAIT = 60_000
const MAX_WAITS = 10

/**
 * The transactions that an output was submitted with, by txid, with valid proofs if any; `not yet` if the peer's lookup
 * service does not know the output.
 */
export type Sources = ReadonlyMap<string, TransactionRecord> | 'not yet'

/** How far a peer has followed the name tree, by its own account. Other implementations do not say. */
export interface PeerProgress {
  isCatchingUp: boolean
  asOf?: AsOf
}

export interface PeerOptions {
  url: string
  /** The timeout of one response up to its last byte, in milliseconds. */
  timeout: number
  /** The longest transaction to read, in bytes. */
  maxBytes: number
}

/** An output whose transaction is requested, the offered output that its graph belongs to, and the topic that would hold it. */
export interface AskedNode {
  graph: Outpoint
  outpoint: Outpoint
  topic: string
}

/** Another host, accessed through the GASP API of overlay hosts. Its answers are not trusted. */
export class Peer {
  /** Whether it has refused a request like the overlay engine does. */
  private isEngine = false
  /** According to its last list. */
  progress: PeerProgress = { isCatchingUp: false }

  constructor(private readonly options: PeerOptions) {}

  /**
   * The unspent outputs of a topic from a score on.
   *
   * @throws PeerError `AWAY` if there is no valid response.
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
      throw new PeerError('AWAY', `the peer does not list its outputs of ${topic}`)
    const response = parsed(syncResponse, answer.body)
    if (response === undefined)
      throw new PeerError('AWAY', `the peer returned no valid list of outputs for ${topic}`)
    this.progress = answer.progress
    return response.UTXOList
  }

  /**
   * The transaction of an output in a graph; undefined if the peer does not have it.
   *
   * The overlay engine refuses everything behind a proven transaction ("Incomplete SPV data!"), unless the graph is the
   * requested output's own. So if an engine refuses, the output is requested as a graph of its own.
   *
   * @throws PeerError `AWAY` if there is no response, `BAD_GRAPH` if it is not the requested transaction, `UNWANTED` if it is
   * too long.
   */
  async node(
    { graph, outpoint, topic }: AskedNode,
    signal: AbortSignal,
  ): Promise<TransactionRecord | undefined> {
    const found = await this.nodeOf({ graph, outpoint, topic }, signal)
    if (found !== 'refused') return found
    this.isEngine = true
    if (formatOutpoint(graph) === formatOutpoint(outpoint)) return undefined
    const alone = await this.nodeOf({ graph: outpoint, outpoint, topic }, signal)
    return alone === 'refused' ? undefined : alone
  }

  private async nodeOf(
    { graph, outpoint, topic }: AskedNode,
    signal: AbortSignal,
  ): Promise<TransactionRecord | 'refused' | undefined> {
    const { txid, vout: outputIndex } = outpoint
    const graphID = formatGaspOutpoint(graph)
    const answer = await this.ask('/requestForeignGASPNode', {
      body: { graphID, txid, outputIndex, metadata: false },
      // Engines since 2.6 return only what the named topic holds.
      headers: { 'x-bsv-topic': topic },
      maxBytes: 2 * this.options.maxBytes + MAX_NODE_REST,
      signal,
    })
    if (answer === 'too long') throw new PeerError('UNWANTED', `${txid} exceeds the limit for a transaction`)
    if (answer.status === REFUSED) return 'refused'
    // Hosts have many ways to say that something is missing, and one to say that they are unavailable.
    if (answer.status >= 400 && answer.status < 500) return undefined
    const node = parsed(gaspNode, answer.body)
    if (node === undefined)
      throw new PeerError('BAD_GRAPH', `the peer returned no valid graph node for ${txid}`)
    if (node.graphID !== graphID || node.outputIndex !== outputIndex)
      throw new PeerError('BAD_GRAPH', `asked for ${txid}, the peer sends the node of another graph`)
    return readNode(txid, node)
  }

  /**
   * The transactions in the BEEF that the peer's lookup service has for an admitted output: those it was submitted with, which
   * the engine's GASP does not return. None if the peer does not run an engine, or has no such service.
   *
   * @param asked.outpoint An output admitted to the topic; for `tm_names`, any output of a mint.
   * @throws PeerError `AWAY` if there is no response, `BAD_GRAPH` if it contains no valid BEEF.
   */
  async sources(
    { topic, outpoint }: { topic: string; outpoint: Outpoint },
    signal: AbortSignal,
  ): Promise<Sources> {
    if (!this.isEngine) return new Map()
    const question =
      topic === TOPICS.names
        ? {
            service: LOOKUP_SERVICES.names,
            query: { origins: [formatOutpoint({ txid: outpoint.txid, vout: NAME_OUTPUT })] },
          }
        : { service: LOOKUP_SERVICES.ordinals, query: { outpoint: formatOutpoint(outpoint) } }
    const answer = await this.ask('/lookup', {
      body: question,
      // Makes the gateway of a host leave the query to its engine.
      headers: { 'x-bsv-topic': topic },
      maxBytes: MAX_LOOKUP_BYTES,
      signal,
    })
    if (answer === 'too long' || answer.status !== 200) return new Map()
    const response = parsed(lookupResponse, answer.body)
    if (response === undefined) return new Map()
    const [output] = response.outputs
    return output === undefined ? 'not yet' : readSources(output.beef)
  }

  private async ask(
    path: string,
    question: { body: unknown; headers?: Record<string, string>; maxBytes: number; signal: AbortSignal },
  ): Promise<PeerAnswer | 'too long'> {
    const { maxBytes, signal } = question
    const { url, timeout } = this.options
    const headers = { 'Content-Type': 'application/json', ...question.headers }
    const init = { method: 'POST', headers, body: JSON.stringify(question.body) }
    const away = (why: string, cause?: unknown): PeerError => new PeerError('AWAY', why, { cause })
    for (let waits = 0; ; waits++) {
      const bounds = { timeout, maxBytes, signal }
      const asking = fetchBounded(url.replace(/\/+$/, '') + path, init, bounds)
      const answer = await asking.catch((cause: SourceError) => {
        signal.throwIfAborted()
        if (cause.code === 'TOO_LARGE') return 'too long' as const
        const why = cause.code === 'TIMEOUT' ? `did not respond within ${timeout} ms` : 'did not respond'
        throw away(`the peer ${why}`, cause)
      })
      if (answer === 'too long') return answer
      const { status, headers: sent, body } = answer
      if (status >= 500) throw away(`the peer answered ${path} with ${status}`)
      if (status !== 429) return { status, body, progress: progressIn(sent) }
      if (waits === MAX_WAITS) throw away('the peer limits the rate, however long this host waits')
      const seconds = Math.max(1, Number(sent.get('retry-after')) || 1)
      await setTimeout(Math.min(seconds * 1000, MAX_WAIT), undefined, { signal, ref: false })
    }
  }
}

interface PeerAnswer {
  status: number
  body: Uint8Array
  progress: PeerProgress
}

function progressIn(headers: Headers): PeerProgress {
  const text = headers.get('x-as-of')
  const block = text === null ? undefined : parsed(asOf, Buffer.from(text, 'utf8'))
  return { isCatchingUp: headers.get('x-complete') === 'false', ...(block && { asOf: block }) }
}

function parsed<Schema extends z.ZodType>(schema: Schema, body: Uint8Array): z.output<Schema> | undefined {
  try {
    return schema.safeParse(JSON.parse(Buffer.from(body).toString('utf8'))).data
  } catch {
    // The caller reports invalid JSON like any other invalid response.
    return undefined
  }
}

function readNode(txid: string, node: z.output<typeof gaspNode>): TransactionRecord {
  const { outputIndex, rawTx, proof } = node
  const view = valid(`the transaction that the peer sends for ${txid} cannot be read`, () =>
    readTransaction(bytesOf(rawTx), { hash: nativeHash256 }),
  )
  if (view.txid !== txid) throw new PeerError('BAD_GRAPH', `asked for ${txid}, the peer sends ${view.txid}`)
  if (outputOf(view, outputIndex) === undefined)
    throw new PeerError(
      'BAD_GRAPH',
      `${txid} has no output ${outputIndex}, but the peer returned a graph node for it`,
    )
  cacheView(view)
  const { raw } = view
  // Engines treat an empty proof as none.
  if (proof == null || proof === '') return { txid, raw }
  const checked = valid(`the merkle path of ${txid} is invalid`, () =>
    readProof({ txid, bump: bytesOf(proof) }),
  )
  return { txid, raw, proof: checked }
}

function readSources(numbers: number[]): Map<string, TransactionRecord> {
  const found = new Map<string, TransactionRecord>()
  try {
    const beef = readBeef(Uint8Array.from(numbers))
    for (const txid of beef.txids) {
      const view = beef.transaction(txid)
      const proof = beef.proof(txid)
      if (view === undefined) continue
      cacheView(view)
      found.set(txid, { txid, raw: view.raw, ...(proof && { proof }) })
    }
  } catch (cause) {
    if (!(cause instanceof BeefError)) throw cause
    throw new PeerError('BAD_GRAPH', 'the BEEF in the answer of the lookup service of the peer is invalid', {
      cause,
    })
  }
  return found
}

function valid<Result>(message: string, read: () => Result): Result {
  try {
    return read()
  } catch (cause) {
    throw new PeerError('BAD_GRAPH', message, { cause })
  }
}

/** Decodes hex in linear time. @throws RangeError if it is not hex. */
function bytesOf(hex: string): Uint8Array {
  const { buffer, byteOffset, length } = Buffer.from(hex, 'hex')
  if (2 * length !== hex.length) throw new RangeError('must be hex of even length')
  return new Uint8Array(buffer, byteOffset, length)
}
