import type { RequestListener, ServerResponse } from 'node:http'
import { joinBytes } from '../../../backend/src/protocol/bytes.js'
import { serving } from './connections.js'
import type { Block, Header, HeaderChain } from './header-chain.js'
import type { Environment } from './test-server.js'

/** How a service of block headers behaves; the way it answers a wrong question is that of the real ones. */
export type Mood =
  | 'answers'
  | 'fails'
  | 'hangs up'
  | 'says nothing'
  | 'talks nonsense'
  | 'answers something else'
  | 'knows no path'
  | 'is busy'

/** Anything that is JSON, and no answer. */
const SOMETHING_ELSE = { message: 'welcome' }

/** How many headers JungleBus gives at once, and WhatsOnChain has in a file. */
const PAGE = 10_000
const FILE = 1000

/**
 * A service that has the headers of a chain, and speaks as the real ones do: Block Headers Service
 * (`/api/v1/chain/…`), WhatsOnChain (`/v1/bsv/main/…`), JungleBus (`/v1/block_header/…`) and Chaintracks (`/v2/…`).
 */
export class HeaderService {
  mood: Mood = 'answers'
  /** What it says how long it is busy, in seconds. */
  retryAfter: string | undefined
  /** Changes the headers that it lists. */
  tamper: ((header: Header) => Header) | undefined
  /** Answers in its place, if it returns true. */
  onResponse: ((url: string, response: ServerResponse) => boolean) | undefined
  /** How much higher it says that its tip is. */
  boast = 0
  /** The responses that its event streams are written to, by path. */
  readonly streams = new Map<string, Set<ServerResponse>>()
  /** What it waits for before it answers. */
  held: Promise<void> | undefined
  /** Headers of other branches that a Block Headers Service lists beside those of the chain. */
  stale: Header[] = []
  /** How many headers it gives at once. */
  page = PAGE
  /** From which height on it gives headers, if not from the one that it is asked about. */
  shift: ((from: number) => number) | undefined
  /** The tip that it knows, where it has not read the whole chain yet. */
  syncedTo: number | undefined
  /** Called with every question, before it is answered. */
  onQuestion: ((question: string) => void) | undefined
  /** Called when it has answered. */
  onAnswer: (() => void) | undefined
  /** Everything it was asked: the URL; of a Block Headers Service `tip` and `<height> <root>`, of WhatsOnChain `<height>`. */
  readonly asked: string[] = []

  constructor(public chain: HeaderChain) {}

  /** Sends an event to all listeners of a stream. */
  send(path: string, event: unknown): void {
    for (const response of this.streams.get(path) ?? [])
      response.write(`: keepalive\n\ndata: ${JSON.stringify(event)}\n\n`)
  }

  readonly listener: RequestListener = (request, response) => {
    request.resume()
    request.on('end', () => void this.answer(request.url ?? '', response))
  }

  private async answer(url: string, response: ServerResponse): Promise<void> {
    if (this.onResponse?.(url, response)) return
    if (url.endsWith('/stream') && this.mood === 'answers') {
      this.openStream(url, response)
      return
    }
    const reply = this.reply(url)
    this.onQuestion?.(this.asked.at(-1) ?? '')
    await this.held
    if (this.mood === 'says nothing') return
    if (this.mood === 'hangs up') {
      response.destroy()
      return
    }
    const speaks = this.mood === 'answers'
    const [status, value] = speaks ? reply : this.badReply()
    const text = this.mood === 'talks nonsense' ? '{' : JSON.stringify(value)
    this.onAnswer?.()
    if (this.mood === 'is busy') {
      response.writeHead(429, this.retryAfter === undefined ? {} : { 'Retry-After': this.retryAfter }).end()
      return
    }
    if (speaks && value instanceof Uint8Array) {
      response.writeHead(status, { 'Content-Type': 'application/octet-stream' }).end(value)
      return
    }
    response.writeHead(status, { 'Content-Type': 'application/json' }).end(text)
  }

  /** The status of an answer, and bytes or what is JSON. */
  reply(url: string): [number, unknown] {
    return this.listed(url) ?? this.replyTo(url)
  }

  private badReply(): [number, unknown] {
    if (this.mood === 'fails') return [500, { code: 'ErrGeneric', message: 'failed' }]
    if (this.mood === 'knows no path') return [404, { message: 'not found' }]
    return [200, SOMETHING_ELSE]
  }

  private openStream(url: string, response: ServerResponse): void {
    this.asked.push(url)
    response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    const open = this.streams.get(url) ?? new Set()
    this.streams.set(url, open.add(response))
    response.on('close', () => open.delete(response))
    const { height, hash } = this.tip().header
    if (url === '/v2/tip/stream') response.write(`data: ${JSON.stringify({ height, hash })}\n\n`)
    else response.write(': connected\n\n')
    this.onQuestion?.(url)
  }

  /** What it answers about many headers; undefined for another question. */
  private listed(url: string): [number, unknown] | undefined {
    const tip = { height: this.tip().header.height + this.boast, hash: this.tip().header.hash }
    const { pathname, searchParams } = new URL(url, 'http://127.0.0.1')
    const [, from] = /^\/v1\/block_header\/list\/(\d+)$/.exec(pathname) ?? []
    const [, first, last] = /^\/v1\/bsv\/main\/block\/headers\/(\d+)_(\d+)_headers\.bin$/.exec(pathname) ?? []
    const reply = (): [number, unknown] | undefined => {
      if (pathname === '/v1/block_header/tip') return [200, { ...tip, coin: 1, synced: 1 }]
      if (pathname === '/v2/tip') return [200, tip]
      if (pathname === '/v1/bsv/main/chain/info')
        return [200, { chain: 'main', blocks: tip.height, bestblockhash: tip.hash }]
      if (from !== undefined) {
        const headers = this.headers(Number(from), Math.min(this.page, Number(searchParams.get('limit'))))
        return [200, headers.map(jungleBusHeader)]
      }
      if (pathname === '/api/v1/chain/tip/longest')
        return [200, { header: { hash: tip.hash }, state: 'LONGEST_CHAIN', height: tip.height }]
      if (pathname === '/api/v1/chain/header/byHeight') {
        const count = Math.min(this.page, Number(searchParams.get('count')))
        const from = Number(searchParams.get('height'))
        const headers = this.headers(from, count)
        const stale = this.stale.filter(({ height }) => height >= from && height < from + count)
        return [200, [...stale, ...headers.reverse()].map(headersHeader)]
      }
      if (pathname === '/v2/headers') {
        const count = Math.min(this.page, Number(searchParams.get('count')))
        return [200, bytesOf(this.headers(Number(searchParams.get('height')), count))]
      }
      if (first !== undefined)
        return [200, bytesOf(this.headers(Number(first), Number(last) - Number(first) + 1))]
      return this.file(pathname)
    }
    const answer = reply()
    if (answer !== undefined) this.asked.push(this.question(url, searchParams))
    return answer
  }

  /** The question about one block or the tip, as `asked` has it. */
  private question(url: string, query: URLSearchParams): string {
    if (url.startsWith('/api/v1/chain/tip')) return 'tip'
    // Some more show which of several blocks at a height is in the chain.
    const isOne = url.startsWith('/api/v1/') && query.get('count') === '10'
    const height = Number(query.get('height'))
    return isOne ? `${height} ${this.block(height)?.header.root ?? ''}` : url
  }

  /** The list of the files of WhatsOnChain, all but the last, and that one. */
  private file(pathname: string): [number, unknown] | undefined {
    const lowest = [...this.chain.branch.blocks()].at(-1)?.header.height ?? 0
    const starts: number[] = []
    for (let start = lowest; start + FILE <= this.tip().header.height; start += FILE) starts.push(start)
    const url = 'https://api.whatsonchain.com/v1/bsv/main/block/headers'
    if (pathname === '/v1/bsv/main/block/headers/resources') {
      const files = starts.map((start) => `${url}/${start}_${start + FILE - 1}_headers.bin`)
      return [200, { files: [`${url}/0_${lowest - 1}_headers.bin`, ...files, `${url}/latest`] }]
    }
    if (pathname !== '/v1/bsv/main/block/headers/latest') return undefined
    return [200, bytesOf(this.headers((starts.at(-1) ?? lowest - FILE) + FILE, PAGE))]
  }

  /** Headers in order from a height on. */
  private headers(asked: number, count: number): Header[] {
    const from = this.shift?.(asked) ?? asked
    const found: Header[] = []
    if (from < 0) return found
    for (const { header } of this.known()) {
      if (header.height < from) break
      if (header.height < from + count) found.push(header)
    }
    const { tamper = (header) => header } = this
    const headers = found.reverse().map(tamper)
    return headers[0]?.height === from ? headers : []
  }

  private replyTo(url: string): [number, unknown] {
    const [, height] = /^\/v1\/bsv\/main\/block\/(\d+)\/header$/.exec(url) ?? []
    if (height === undefined) return [404, { message: 'no such path' }]
    this.asked.push(height)
    const block = this.block(Number(height))
    return block === undefined ? [404, 'Not Found'] : [200, this.explorersHeader(block)]
  }

  private *known(): Generator<Block> {
    for (const block of this.chain.branch.blocks()) {
      if (block.header.height <= (this.syncedTo ?? Number.POSITIVE_INFINITY)) yield block
    }
  }

  private block(height: number): Block | undefined {
    return height <= this.tip().header.height ? this.chain.branch.block(height) : undefined
  }

  private tip(): Block {
    const { value } = this.known().next()
    if (value === undefined) throw new Error('the service knows no block')
    return value
  }

  private explorersHeader({ header, txids }: Block): unknown {
    const { hash, height, root, time, nonce, bits, previous } = header
    const confirmations = this.tip().header.height - height + 1
    return {
      ...{ hash, height, confirmations, version: 1, merkleroot: root, txcount: txids.length, time, nonce },
      ...{ bits: bits.toString(16), previousblockhash: previous },
    }
  }
}

function jungleBusHeader({ height, hash, root, time, nonce, bits, bytes }: Header): unknown {
  const version = Buffer.from(bytes).readUInt32LE(0)
  return { hash, coin: 1, height, time, nonce, version, merkleroot: root, bits: bits.toString(16), synced: 1 }
}

function bytesOf(headers: Header[]): Uint8Array {
  return joinBytes(headers.map(({ bytes }) => bytes))
}

function headersHeader({ hash, previous, root, time, bits, nonce, bytes }: Header): unknown {
  const version = Buffer.from(bytes).readInt32LE(0)
  return {
    ...{ hash, version, prevBlockHash: previous, merkleRoot: root, creationTimestamp: time, nonce },
    difficultyTarget: bits,
  }
}

/** The settings of a host that has a service as its only source of the headers of a chain, from the first of them on. */
export function headersSettings(chain: HeaderChain, url: string): Environment {
  const { height, hash } = chain.first
  return {
    CHAIN_TRACKER: 'headers',
    HEADERS_SOURCES: `headersservice=${url}`,
    HEADERS_CHECKPOINT: `${height}:${hash}`,
  }
}

/** A service for as long as the test runs. `settings` are those of a host that has it as its only source of headers. */
export async function startHeaderService(
  chain: HeaderChain,
): Promise<{ url: string; settings: Environment; service: HeaderService; stop(): Promise<void> }> {
  const service = new HeaderService(chain)
  const { url, close } = await serving(service.listener)
  return { url, settings: headersSettings(chain, url), service, stop: close }
}
