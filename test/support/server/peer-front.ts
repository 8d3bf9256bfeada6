import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { readBeef } from '../../../backend/src/graph/read-beef.js'
import { encodeBeef } from '../../../backend/src/graph/write-beef.js'
import { toHex } from '../../../backend/src/protocol/bytes.js'
import { parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { serving } from './connections.js'
import { ask, type TestServer } from './test-server.js'

/** A question of a peer, and what the host behind the front says to it. */
export interface FrontExchange {
  path: string
  topic: string | undefined
  asked: Record<string, unknown>
  /** The answer as JSON; a fault may change it, or give another. */
  answer: Record<string, unknown>
}

/** What a front does to an answer: gives another, a text that is none, refuses as an engine does, or breaks the connection. */
export type Fault = (
  exchange: FrontExchange,
) => Record<string, unknown> | string | typeof REFUSAL | 'broken' | undefined

/** How the overlay engine answers for what is behind a proven transaction. */
const REFUSAL = { status: 'error', message: 'Incomplete SPV data!' }

/**
 * Has a front give out nodes as the overlay engine does: none but in a graph of their own, and of what was submitted alone. The
 * coins that were submitted with it, only the lookup services say.
 *
 * @param beefs What was submitted; each proven.
 */
export function asEngine(beefs: Uint8Array[]): Fault {
  const submitted = new Map(beefs.map((beef) => [readBeef(beef).subject.txid, beef]))
  return ({ path, asked }) => {
    if (path === '/lookup') {
      const { origins, outpoint } = asked.query as { origins?: string[]; outpoint?: string }
      const { txid, vout } = parseOutpoint(origins?.[0] ?? outpoint ?? '')
      const beef = submitted.get(txid)
      if (beef === undefined) return { type: 'output-list', outputs: [] }
      const { transaction, proof, txids } = readBeef(beef)
      const sent = txids
        .filter((each) => each === txid || !submitted.has(each))
        .flatMap((each) => {
          const raw = transaction(each)?.raw
          return raw === undefined ? [] : [{ raw, proof: proof(each) }]
        })
      return { type: 'output-list', outputs: [{ beef: Array.from(encodeBeef(sent)), outputIndex: vout }] }
    }
    if (path !== '/requestForeignGASPNode') return undefined
    const { graphID, outputIndex } = asked
    const txid = String(asked.txid)
    const beef = submitted.get(txid)
    if (beef === undefined || graphID !== `${txid}.${outputIndex}`) return REFUSAL
    const { subject, proof } = readBeef(beef)
    const { merklePath = new Uint8Array() } = proof(txid) ?? {}
    return { graphID, rawTx: toHex(subject.raw), outputIndex, proof: toHex(merklePath) }
  }
}

/** A host as its peers see it through a front that may lie, or break off. */
class PeerFront {
  url = ''
  host: Pick<TestServer, 'url'> | undefined
  fault: Fault | undefined
  /** The txids of the nodes that were asked for, in order. */
  readonly nodes: string[] = []
  lists = 0

  // A host that has ended is one that does not answer.
  readonly listener: RequestListener = (request, response) =>
    void this.answer(request, response).catch(() => response.destroy())

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await buffer(request)
    const path = request.url ?? ''
    const asked = JSON.parse(body.toString('utf8')) as Record<string, unknown>
    if (path === '/requestForeignGASPNode') this.nodes.push(String(asked.txid))
    else if (path === '/requestSyncResponse') this.lists++
    if (this.host === undefined) {
      response.destroy()
      return
    }
    const topic = request.headers['x-bsv-topic'] as string | undefined
    const headers = { 'Content-Type': 'application/json', ...(topic && { 'x-bsv-topic': topic }) }
    const { status, json } = await ask(this.host.url, path, { method: 'POST', headers, body })
    const answer = json as Record<string, unknown>
    const sent = this.fault?.({ path, topic, asked, answer }) ?? answer
    if (sent === 'broken') response.destroy()
    else {
      const code = sent === REFUSAL ? 400 : 200
      response.writeHead(sent === answer ? status : code, { 'Content-Type': 'application/json' })
      response.end(typeof sent === 'string' ? sent : JSON.stringify(sent))
    }
  }
}

/** A front for as long as the test runs. */
export async function openFront(host?: PeerFront['host']): Promise<PeerFront> {
  const front = new PeerFront()
  front.host = host
  front.url = (await serving(front.listener)).url
  return front
}
