import type { RequestListener, ServerResponse } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import type { TransactionRecord } from '../../../backend/src/graph/records.js'
import { fromHex } from '../../../backend/src/protocol/bytes.js'
import { formatOutpoint, type Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { readTransaction } from '../../../backend/src/protocol/transaction.js'
import { listening } from '../server/connections.js'

/** What goes wrong with an answer. */
export type Fault =
  /** 429, with that in `Retry-After`. */
  | { kind: 'busy'; until: string }
  | { kind: 'status'; status: number }
  /** The connection is cut after half of the body. */
  | 'cut'
  /** Half of the body, as if that were all. */
  | 'half'
  /** The answer to another question of the kind. */
  | 'other'
  /** More than anybody asked for. */
  | 'long'
  | 'never'

/** A service that knows transactions, and speaks as JungleBus does; its answers to wrong questions are 404. */
export class JungleBusService {
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
  private readonly known = new Map<string, TransactionRecord>()
  private readonly spenders = new Map<string, string>()

  know(...records: TransactionRecord[]): void {
    for (const record of records) {
      this.known.set(record.txid, record)
      const { inputs } = readTransaction(record.raw, { txid: record.txid })
      for (const outpoint of inputs) this.say(outpoint, record.txid)
    }
  }

  forget(txid: string): void {
    this.known.delete(txid)
    for (const [outpoint, spender] of this.spenders) if (spender === txid) this.spenders.delete(outpoint)
  }

  /** Names a spender, whether it spends or not. */
  say(outpoint: Outpoint, spender: string): void {
    this.spenders.set(formatOutpoint(outpoint), spender)
  }

  readonly listener: RequestListener = ({ url = '' }, response) => void this.answer(url, response)

  private async answer(path: string, response: ServerResponse): Promise<void> {
    const fault = this.fault(path, this.asked.length)
    this.asked.push(path)
    await this.onQuestion(path)
    this.mostAtOnce = Math.max(this.mostAtOnce, ++this.atOnce)
    if (this.delay > 0) await setTimeout(this.delay)
    this.atOnce--
    const body = fault === 'other' ? this.otherBody(path) : this.body(path)
    if (fault === 'never') return
    if (typeof fault === 'object') {
      const headers = fault.kind === 'busy' ? { 'Retry-After': fault.until } : {}
      response.writeHead(fault.kind === 'busy' ? 429 : fault.status, headers).end()
      return
    }
    if (body === undefined) {
      response.writeHead(404).end('not found')
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

  private body(path: string): Uint8Array | undefined {
    const [, kind, id = ''] =
      /^\/v1\/(transaction\/get|transaction\/proof|txo\/spend)\/([^/]+)/.exec(path) ?? []
    if (kind === 'transaction/get') return this.known.get(id)?.raw
    if (kind === 'transaction/proof') return this.known.get(id)?.proof?.merklePath
    if (kind !== 'txo/spend' || !this.known.has(id.slice(0, 64))) return undefined
    const spender = this.spenders.get(id)
    return spender === undefined ? new Uint8Array() : fromHex(spender)
  }

  private otherBody(path: string): Uint8Array | undefined {
    const others = [...this.known.values()].filter(({ txid }) => !path.includes(txid))
    if (path.includes('/spend/')) return fromHex(others[0]?.txid ?? '')
    const isProof = path.includes('/proof/')
    return others
      .map(({ raw, proof }) => (isProof ? proof?.merklePath : raw))
      .find((body) => body !== undefined)
  }
}

/** Such services for the tests of one file; all are stopped when its tests are done. */
export function useJungleBuses(): {
  start(): Promise<{ url: string; service: JungleBusService; stop(): Promise<void> }>
} {
  const started: { close(): Promise<void> }[] = []
  afterAll(async () => {
    await Promise.all(started.map((server) => server.close()))
  })
  return {
    async start() {
      const service = new JungleBusService()
      const server = await listening(service.listener)
      let closed: Promise<void> | undefined
      const stop = (): Promise<void> => {
        closed ??= server.close()
        return closed
      }
      started.push({ close: stop })
      return { url: server.url, service, stop }
    },
  }
}
