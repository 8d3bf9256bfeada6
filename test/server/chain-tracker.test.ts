import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { beefOf, FakeChain, type FakeTransaction } from '../support/fake-chain.js'
import { type TestServer, treeOf, useServers } from '../support/test-server.js'

// Beyond the machine stands a service of block headers: here one that speaks the same protocol (Block Headers Service,
// /api/v1/chain), with the headers that a test gives it.

const servers = useServers()

type Mood = 'answers' | 'fails' | 'hangs up' | 'talks nonsense' | 'says nothing'

/** The headers of a chain: a merkle root for each height. */
class HeadersService {
  mood: Mood = 'answers'
  asked = 0
  private readonly roots = new Map<number, string>()
  private readonly server: Server

  constructor() {
    this.server = createServer((request, response) => {
      this.asked++
      let text = ''
      request.on('data', (piece: Buffer) => {
        text += piece.toString('utf8')
      })
      request.on('end', () => {
        if (this.mood === 'hangs up') {
          response.destroy()
          return
        }
        if (this.mood === 'says nothing') return
        const status = this.mood === 'fails' ? 500 : 200
        response.writeHead(status, { 'Content-Type': 'application/json' })
        response.end(this.mood === 'talks nonsense' ? '{' : JSON.stringify(this.answer(request.url, text)))
      })
    })
  }

  private answer(url: string | undefined, text: string): unknown {
    if (this.mood === 'fails') return { code: 'ErrGeneric', message: 'failed' }
    if (url === '/api/v1/chain/tip/longest') return { height: Math.max(...this.roots.keys()) }
    const asked = JSON.parse(text) as { blockHeight: number; merkleRoot: string }[]
    const confirmations = asked.map(({ blockHeight, merkleRoot }) => ({
      blockHeight,
      merkleRoot,
      confirmation: this.roots.get(blockHeight) === merkleRoot ? 'CONFIRMED' : 'INVALID',
    }))
    const confirmed = confirmations.every(({ confirmation }) => confirmation === 'CONFIRMED')
    return { confirmationState: confirmed ? 'CONFIRMED' : 'INVALID', confirmations }
  }

  /** Gives a block that holds one transaction and nothing else: its root is the txid. */
  hold({ height, txid }: FakeTransaction): void {
    this.roots.set(height, txid)
  }

  async start(): Promise<string> {
    this.server.listen(0, '127.0.0.1')
    await once(this.server, 'listening')
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`
  }

  stop(): void {
    this.server.closeAllConnections()
    this.server.close()
  }
}

const started: HeadersService[] = []
afterAll(() => {
  for (const headers of started) headers.stop()
})

async function setUp(): Promise<{ chain: FakeChain; headers: HeadersService; server: TestServer }> {
  const chain = new FakeChain()
  const headers = new HeadersService()
  started.push(headers)
  const CHAIN_TRACKER = await headers.start()
  const patience = { CHAIN_TRACKER_TIMEOUT_MS: '500' }
  const server = await servers.start({ ...treeOf(chain.deployment), CHAIN_TRACKER, ...patience })
  headers.hold(chain.genesis)
  return { chain, headers, server }
}

test('a proof that the headers confirm is taken', async () => {
  const { chain, headers, server } = await setUp()
  const mint = chain.mint('a')
  headers.hold(mint)
  for (const transaction of [chain.genesis, mint]) {
    expect((await server.submit(beefOf(transaction))).status).toBe(200)
  }
  expect((await server.ask('/svc/names/origin/a')).json).toEqual({ name: 'a', outpoint: mint.outpoint(2) })
  expect(headers.asked).toBeGreaterThanOrEqual(2)
})

test.each([
  ['a block that has another root', (transaction: FakeTransaction) => beefOf(transaction)],
  ['a height without a block', (transaction: FakeTransaction) => beefOf(transaction, { height: 800_090 })],
])('a proof for %s is refused, and nothing is stored', async (_, wrap) => {
  const { chain, headers, server } = await setUp()
  await server.submit(beefOf(chain.genesis))
  const mint = chain.mint('a')
  headers.hold({ ...mint, txid: 'ab'.repeat(32) })
  const before = server.rows()
  const { status, headers: head, json } = await server.submit(wrap(mint))
  expect(status).toBe(400)
  expect(json).toMatchObject({ code: 'BAD_BODY', status: 'error', error: expect.any(String) })
  expect(head['cache-control']).toBe('no-store')
  expect(server.rows()).toEqual(before)
  expect((await server.ask('/svc/names/origin/a')).status).toBe(404)

  headers.hold(mint)
  expect((await server.submit(beefOf(mint))).json).toMatchObject({ tm_names: { outputsToAdmit: [0, 1, 2] } })
})

test.each<Mood>(['fails', 'hangs up', 'talks nonsense', 'says nothing'])(
  'while the service %s a submission may be tried again, and then it is taken',
  async (mood) => {
    const { chain, headers, server } = await setUp()
    await server.submit(beefOf(chain.genesis))
    const mint = chain.mint('a')
    headers.hold(mint)
    const before = server.rows()
    headers.mood = mood
    const { status, headers: head, json } = await server.submit(beefOf(mint))
    expect({ status, json }).toEqual({
      status: 503,
      json: {
        code: 'NOT_READY',
        status: 'error',
        error: expect.stringContaining('did not answer'),
        message: expect.stringContaining('did not answer'),
      },
    })
    expect(head['cache-control']).toBe('no-store')
    expect(server.rows()).toEqual(before)
    // Reading needs no headers.
    expect((await server.ask('/svc/names/mine/a')).status).toBe(200)

    headers.mood = 'answers'
    expect((await server.submit(beefOf(mint))).json).toMatchObject({
      tm_names: { outputsToAdmit: [0, 1, 2] },
    })
    expect((await server.ask('/svc/names/origin/a')).status).toBe(200)
  },
)

test('a service that is not there is the same as one that fails', async () => {
  const { chain, headers, server } = await setUp()
  headers.stop()
  const before = server.rows()
  const { status, json } = await server.submit(beefOf(chain.genesis))
  expect(status).toBe(503)
  expect(json).toMatchObject({ code: 'NOT_READY' })
  expect(server.rows()).toEqual(before)
})
