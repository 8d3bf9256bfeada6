import type { RequestListener, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'
import type { TransactionRecord } from '../../../backend/src/graph/records.js'
import type { Outpoint } from '../../../backend/src/protocol/outpoint.js'

/** What goes wrong with an answer. */
export type Fault =
  /** 429, with that in `Retry-After`. */
  | { kind: 'busy'; until: string }
  | { kind: 'status'; status: number }
  /** This body with status 200, whatever the question was. */
  | { kind: 'body'; body: Uint8Array }
  /** The connection is cut after half of the body. */
  | 'cut'
  /** Half of the body, as if that were all. */
  | 'half'
  /** The answer to another question of the kind. */
  | 'other'
  /** More than anybody asked for. */
  | 'long'
  | 'never'

/** What a service knows of the chain. */
export interface ChainView {
  /** With its proof if it is mined. */
  transaction(txid: string): TransactionRecord | undefined
  /** What spends an output, mined or not. */
  spenderOf(outpoint: Outpoint): string | undefined
  transactions(): Iterable<TransactionRecord>
}

export interface Reply {
  status: number
  body: Uint8Array
}

/** How a service answers a path, and the body of a POST. */
export type Protocol<View extends ChainView> = (path: string, view: View, body: string) => Reply

export const ok = (body: Uint8Array): Reply => ({ status: 200, body })
export const json = (value: unknown, status = 200): Reply => ({
  status,
  body: new TextEncoder().encode(JSON.stringify(value)),
})
export const NOT_FOUND: Reply = { status: 404, body: new TextEncoder().encode('not found') }

/** A service that speaks a protocol over what it knows, and whose answers can go wrong. */
export class FakeService<View extends ChainView> {
  /** Milliseconds before it answers. */
  delay = 0
  /** What is wrong with the answer to a question, the n-th of all, from 0. */
  fault: (path: string, nth: number) => Fault | undefined = () => undefined
  /** Called with every question, which is answered afterwards. */
  onQuestion: (path: string) => void | Promise<void> = () => {}
  /** Everything it was asked. */
  readonly asked: string[] = []
  /** How many questions it had at once, at most. */
  mostAtOnce = 0
  private atOnce = 0

  constructor(
    private readonly protocol: Protocol<View>,
    protected readonly view: View,
  ) {}

  readonly listener: RequestListener = (request, response) =>
    void text(request)
      .catch(() => '')
      .then((body) => this.answer(request.url ?? '', body, response))

  private async answer(path: string, question: string, response: ServerResponse): Promise<void> {
    const fault = this.fault(path, this.asked.length)
    this.asked.push(path)
    await this.onQuestion(path)
    this.mostAtOnce = Math.max(this.mostAtOnce, ++this.atOnce)
    if (this.delay > 0) await setTimeout(this.delay)
    this.atOnce--
    if (fault === 'never') return
    if (typeof fault === 'object') {
      const headers = fault.kind === 'busy' ? { 'Retry-After': fault.until } : {}
      const status = { busy: 429, status: fault.kind === 'status' ? fault.status : 0, body: 200 }[fault.kind]
      response.writeHead(status, headers).end(fault.kind === 'body' ? fault.body : undefined)
      return
    }
    const { status, body } = this.protocol(
      fault === 'other' ? this.otherPath(path) : path,
      this.view,
      question,
    )
    if (status !== 200) {
      response.writeHead(status).end(body)
      return
    }
    const half = body.subarray(0, Math.ceil(body.length / 2))
    if (fault === 'cut') {
      response.writeHead(200, { 'Content-Length': body.length + 1 })
      response.write(half, () => response.destroy())
      return
    }
    const long = fault === 'long' ? new Uint8Array(100_000_000) : body
    response.writeHead(200, { 'Content-Type': 'application/octet-stream' })
    response.end(fault === 'half' ? half : long)
  }

  /** A question of the kind about another transaction, which has an answer. */
  private otherPath(path: string): string {
    const txid = /[0-9a-f]{64}/.exec(path)?.[0] ?? ''
    for (const { txid: other } of this.view.transactions()) {
      const otherPath = path.replace(txid, other)
      const { status, body } = this.protocol(otherPath, this.view, '')
      if (other !== txid && status === 200 && body.length > 0) return otherPath
    }
    return path
  }
}
