import type { IncomingMessage, ServerResponse } from 'node:http'
import { listening } from './connections.js'
import { ask, type TestServer } from './test-server.js'

/** A question of a peer, and what the host behind the front says to it. */
export interface FrontExchange {
  path: string
  topic: string | undefined
  asked: Record<string, unknown>
  /** The answer as JSON; a fault may change it, or give another. */
  answer: Record<string, unknown>
}

/** What a front does to an answer: gives another, a text that is none, or breaks the connection. */
export type Fault = (exchange: FrontExchange) => Record<string, unknown> | string | 'broken' | undefined

/** A host as its peers see it through a front that may lie, or break off. */
export class PeerFront {
  url = ''
  host: Pick<TestServer, 'url'> | undefined
  fault: Fault | undefined
  /** The txids of the nodes that were asked for, in order. */
  readonly nodes: string[] = []
  lists = 0
  private close = async (): Promise<void> => {}

  async open(): Promise<this> {
    const { url, close } = await listening((request, response) => {
      // A host that has ended is one that does not answer.
      this.answer(request, response).catch(() => response.destroy())
    })
    this.url = url
    this.close = close
    return this
  }

  async end(): Promise<void> {
    await this.close()
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks)
    const path = request.url ?? ''
    const asked = JSON.parse(body.toString('utf8')) as Record<string, unknown>
    if (path === '/requestForeignGASPNode') this.nodes.push(String(asked.txid))
    else this.lists++
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
      response.writeHead(sent === answer ? status : 200, { 'Content-Type': 'application/json' })
      response.end(typeof sent === 'string' ? sent : JSON.stringify(sent))
    }
  }
}

/** Fronts for the tests of one file. */
export function useFronts(): { open(host?: Pick<TestServer, 'url'>): Promise<PeerFront> } {
  const fronts: PeerFront[] = []
  afterAll(() => Promise.all(fronts.map((front) => front.end())))
  return {
    async open(host) {
      const front = await new PeerFront().open()
      front.host = host
      fronts.push(front)
      return front
    },
  }
}
