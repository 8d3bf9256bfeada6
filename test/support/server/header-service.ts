import type { RequestListener, ServerResponse } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import { toHex } from '../../../backend/src/protocol/bytes.js'
import { listening } from './connections.js'
import type { Block, HeaderChain } from './header-chain.js'

/** How a service of block headers behaves; the way it answers a wrong question is that of the real ones. */
export type Mood =
  | 'answers'
  | 'fails'
  | 'hangs up'
  | 'says nothing'
  | 'talks nonsense'
  | 'answers something else'
  | 'knows no path'
  | 'confirms another block'

/** Anything that is JSON, and no answer. */
const SOMETHING_ELSE = { message: 'welcome' }

/** How far above its tip the Block Headers Service does not say no, but that it cannot tell. */
const SOON = 6

/**
 * A service that has the headers of a chain, and speaks as two real ones do: Block Headers Service
 * (`/api/v1/chain/…`) and WhatsOnChain (`/v1/bsv/main/block/…`).
 */
export class HeaderService {
  mood: Mood = 'answers'
  /** Milliseconds before it answers. */
  delay = 0
  /** The tip that it knows, where it has not read the whole chain yet. */
  syncedTo: number | undefined
  /** Called with every question, before it is answered. */
  onQuestion: ((question: string) => void) | undefined
  /** Called when it has answered. */
  onAnswer: (() => void) | undefined
  /** Everything it was asked: `tip`, or `<height> <root>`, of WhatsOnChain `<height>`. */
  readonly asked: string[] = []

  constructor(private readonly chain: HeaderChain) {}

  readonly listener: RequestListener = (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => void this.answer(request.url ?? '', Buffer.concat(chunks), response))
  }

  private async answer(url: string, body: Buffer, response: ServerResponse): Promise<void> {
    const reply = this.replyTo(url, body)
    this.onQuestion?.(this.asked.at(-1) ?? '')
    if (this.delay > 0) await setTimeout(this.delay)
    if (this.mood === 'says nothing') return
    if (this.mood === 'hangs up') {
      response.destroy()
      return
    }
    const speaks = this.mood === 'answers' || this.mood === 'confirms another block'
    const [status, value] = speaks ? reply : this.badReply()
    const text = this.mood === 'talks nonsense' ? '{' : JSON.stringify(value)
    this.onAnswer?.()
    response.writeHead(status, { 'Content-Type': 'application/json' }).end(text)
  }

  private badReply(): [number, unknown] {
    if (this.mood === 'fails') return [500, { code: 'ErrGeneric', message: 'failed' }]
    if (this.mood === 'knows no path') return [404, { message: 'not found' }]
    return [200, SOMETHING_ELSE]
  }

  private replyTo(url: string, body: Buffer): [number, unknown] {
    if (url === '/api/v1/chain/tip/longest') {
      this.asked.push('tip')
      return [
        200,
        { header: headersHeader(this.tip()), state: 'LONGEST_CHAIN', height: this.tip().header.height },
      ]
    }
    if (url === '/api/v1/chain/merkleroot/verify')
      return [200, this.confirmations(JSON.parse(body.toString()))]
    if (url === '/v1/bsv/main/block/headers') {
      this.asked.push('tip')
      const last = [...this.known()].slice(0, 10)
      return [200, last.map((block) => this.explorersHeader(block))]
    }
    const [, height] = /^\/v1\/bsv\/main\/block\/(\d+)\/header$/.exec(url) ?? []
    if (height === undefined) return [404, { message: 'no such path' }]
    this.asked.push(height)
    const block = this.mood === 'confirms another block' ? this.tip() : this.block(Number(height))
    return block === undefined ? [404, 'Not Found'] : [200, this.explorersHeader(block)]
  }

  private confirmations(asked: { blockHeight: number; merkleRoot: string }[]): unknown {
    const confirmations = asked.map(({ blockHeight, merkleRoot }) => {
      this.asked.push(`${blockHeight} ${merkleRoot}`)
      const above = blockHeight - this.tip().header.height
      const other = above > 0 && above <= SOON ? 'UNABLE_TO_VERIFY' : 'INVALID'
      const header = this.block(blockHeight)?.header
      const confirmation = header?.root === merkleRoot ? 'CONFIRMED' : other
      return { blockHash: header?.hash ?? '', blockHeight, merkleRoot, confirmation }
    })
    if (this.mood === 'confirms another block') {
      const { height: blockHeight, root: merkleRoot, hash: blockHash } = this.tip().header
      const other = { blockHash, blockHeight, merkleRoot, confirmation: 'CONFIRMED' }
      return { confirmationState: 'CONFIRMED', confirmations: [other] }
    }
    const states = confirmations.map(({ confirmation }) => confirmation)
    const worst = ['INVALID', 'UNABLE_TO_VERIFY'].find((state) => states.includes(state))
    return { confirmationState: worst ?? 'CONFIRMED', confirmations }
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

function headersHeader({ header }: Block): unknown {
  const { hash, previous, root, time, bits, nonce, bytes } = header
  return {
    ...{ hash, version: 1, prevBlockHash: previous, merkleRoot: root, creationTimestamp: time, nonce },
    ...{ difficultyTarget: bits, bytes: toHex(bytes) },
  }
}

/** Services of block headers for the tests of one file; all are stopped when its tests are done. */
export function useHeaderServices(): {
  start(chain: HeaderChain): Promise<{ url: string; service: HeaderService; stop(): Promise<void> }>
} {
  const started: { close(): Promise<void> }[] = []
  afterAll(async () => {
    await Promise.all(started.map((server) => server.close()))
  })
  return {
    async start(chain) {
      const service = new HeaderService(chain)
      const server = await listening(service.listener)
      let closed: Promise<void> | undefined
      const close = (): Promise<void> => {
        closed ??= server.close()
        return closed
      }
      started.push({ close })
      return { url: server.url, service, stop: close }
    },
  }
}
