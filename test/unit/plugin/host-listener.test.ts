import { MerklePath } from '@bsv/sdk'
import express, { type RequestHandler } from 'express'
import { hostedIndex } from '../../../backend/src/host/hosted-index.js'
import { encodeVarint } from '../../../backend/src/protocol/byte-cursor.js'
import { joinBytes, toHex } from '../../../backend/src/protocol/bytes.js'
import type { FactStore } from '../../../backend/src/read/fact-store.js'
import { HeardProofs } from '../../../src/plugin/heard-proofs.js'
import { attachHostListener, type HostListenerOptions, storesOf } from '../../../src/plugin/index.js'
import { beefOf, FakeChain, type FakeTransaction, OPEN_LOCK } from '../../support/protocol/fake-chain.js'
import { serving } from '../../support/server/connections.js'
import { ask, posted, submission, useServers } from '../../support/server/test-server.js'
import { until } from '../../support/server/waiting.js'
import { openSqlite } from '../../support/storage/sqlite-database.js'

// What a host hears of proofs, by what it answers and what its chain tracker says. Whole hosts: plugin-contract.ts.

const { folder } = useServers()
const chain = new FakeChain()

const inChain: HostListenerOptions['chainTracker'] = { isValidRootForHeight: async () => true }

/** A host that answers everything in one way, and its index. */
async function host(options: Partial<HostListenerOptions> = {}, answer: RequestHandler = answering(200)) {
  const { writer, close } = await openSqlite(await folder())
  const stores = storesOf(writer)
  onTestFinished(close)
  onTestFinished(() => hostedIndex(writer).close())
  const { graph } = stores
  const app = express()
  const errors: unknown[] = []
  const onError = (error: unknown): void => void errors.push(error)
  attachHostListener(app, stores, { chainTracker: inChain, onError, retryAfter: 5, ...options })
  app.use(express.json(), express.raw({ type: 'application/octet-stream' }), answer)
  const server = await serving(app)
  return {
    url: server.url,
    errors,
    async know({ txid, raw }: FakeTransaction): Promise<void> {
      await graph.opened?.()
      await graph.record([{ txid, raw }])
    },
    heightOf: async ({ txid }: FakeTransaction) => {
      await graph.opened?.()
      return graph.transactions.raw(txid)?.proof?.height
    },
    tell: (transaction: FakeTransaction, path = '/arc-ingest') =>
      ask(server.url, path, posted(proofOf(transaction))),
  }
}

function answering(status: number): RequestHandler {
  return (_request, response) => void response.status(status).json({ status })
}

function proofOf({ txid, height }: FakeTransaction): { txid: string; merklePath: string } {
  const path = new MerklePath(height, [[{ offset: 0, hash: txid, txid: true }]])
  return { txid, merklePath: toHex(Uint8Array.from(path.toBinary())) }
}

function transaction(): FakeTransaction {
  return chain.spend({ inputs: [], outputs: [{ satoshis: 1, lockingScript: OPEN_LOCK }] })
}

describe('a proof of a known transaction', () => {
  test.each([200, 400, 404, 500])('is heard if the host answers %s', async (status) => {
    const known = transaction()
    const { know, tell, heightOf } = await host({}, answering(status))
    await know(known)
    const answer = await tell(known)
    expect(answer).toMatchObject({ status, json: { status } })
    expect(await heightOf(known)).toBe(known.height)
  })

  test.each([401, 403, 429])('is not heard if the host refuses it with %s', async (status) => {
    const known = transaction()
    const { know, tell, heightOf } = await host({}, answering(status))
    await know(known)
    expect((await tell(known)).status).toBe(status)
    expect(await heightOf(known)).toBeUndefined()
  })

  test('is heard only from a host that takes it if nothing checks it', async () => {
    const known = transaction()
    const { know, tell, heightOf } = await host({ chainTracker: 'scripts only' }, answering(400))
    await know(known)
    await tell(known)
    expect(await heightOf(known)).toBeUndefined()
  })

  test('is not heard if the chain does not have it', async () => {
    const known = transaction()
    const { know, tell, heightOf } = await host({
      chainTracker: { isValidRootForHeight: async () => false, currentHeight: async () => known.height },
    })
    await know(known)
    await tell(known)
    expect(await heightOf(known)).toBeUndefined()
  })

  test.each(['/arc-ingest/', '/ARC-ingest'])('is heard at %s, which Express takes as well', async (path) => {
    const known = transaction()
    const { know, tell, heightOf } = await host()
    await know(known)
    await tell(known, path)
    expect(await heightOf(known)).toBe(known.height)
  })

  test('is heard with a txid in capitals', async () => {
    const known = transaction()
    const { know, url, heightOf } = await host()
    await know(known)
    const { txid, merklePath } = proofOf(known)
    await ask(url, '/arc-ingest', posted({ txid: txid.toUpperCase(), merklePath }))
    expect(await heightOf(known)).toBe(known.height)
  })

  test.each(['/submit', '/SUBMIT/'])(
    'is heard in a BEEF to %s, with off-chain values or without',
    async (path) => {
      const { know, url, heightOf } = await host()
      for (const isFramed of [false, true]) {
        const known = transaction()
        await know(known)
        const beef = beefOf(known)
        const framed = joinBytes([encodeVarint(beef.length), beef, Uint8Array.of(1, 2, 3)])
        const { headers, ...sent } = submission(isFramed ? framed : beef)
        await ask(url, path, {
          ...sent,
          headers: { ...headers, 'x-includes-off-chain-values': String(isFramed) },
        })
        expect(await heightOf(known)).toBe(known.height)
      }
    },
  )
})

describe('is heard later', () => {
  test('for a quarter of an hour, after waits that double', async () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    const raw = vi.fn()
    const graph = { transactions: { raw } } as unknown as FactStore
    const bounds = { onError: () => {}, trackerTimeout: 1000, retryAfter: 1000 }
    const proofs = new HeardProofs({ graph, chainTracker: 'scripts only', ...bounds })
    await proofs.hear({ txid: 'ab'.repeat(32), proof: { height: 1, root: '', merklePath: new Uint8Array() } })
    await vi.advanceTimersByTimeAsync(900_000)
    expect(raw).toHaveBeenCalledTimes(10)
    await vi.advanceTimersByTimeAsync(900_000)
    expect(raw).toHaveBeenCalledTimes(11)
  })

  test('a proof that comes before its transaction', async () => {
    const late = transaction()
    const { know, tell, heightOf } = await host()
    await tell(late)
    await know(late)
    expect(await until(() => heightOf(late))).toBe(late.height)
  })

  test.each([
    ['fails', async () => Promise.reject(new Error('down'))],
    ['does not answer', () => new Promise<boolean>(() => {})],
    ['is a block behind', async () => false],
  ])('a proof that comes while the chain tracker %s, and the answer comes all the same', async (_, first) => {
    const known = transaction()
    const answers = [first, async () => true]
    let asked = 0
    const { know, tell, heightOf } = await host({
      chainTracker: {
        isValidRootForHeight: async () => (await answers[Math.min(asked++, 1)]?.()) ?? true,
        currentHeight: async () => known.height - 1,
      },
      trackerTimeout: 50,
    })
    await know(known)
    expect((await tell(known)).status).toBe(200)
    expect(await until(() => heightOf(known))).toBe(known.height)
    // Nothing is recorded on what it said first.
    expect(asked).toBe(2)
  })
})

test('a host that fails after its answer is not heard twice, and its answer stays', async () => {
  const known = transaction()
  let proceed = (_isValid: boolean): void => {}
  const held = new Promise<boolean>((resolve) => {
    proceed = resolve
  })
  const later: unknown[] = []
  const { know, tell, heightOf } = await host(
    { chainTracker: { isValidRootForHeight: () => held } },
    (_request, response) => {
      response.status(200).json({ status: 'success' })
      try {
        if (!response.headersSent) later.push('the host takes it for unanswered')
        response.status(400).json({ status: 'error' })
      } catch (error) {
        later.push((error as NodeJS.ErrnoException).code)
      }
      response.end()
      proceed(true)
    },
  )
  await know(known)
  expect(await tell(known)).toMatchObject({ status: 200, json: { status: 'success' } })
  expect(later).toEqual(['ERR_HTTP_HEADERS_SENT'])
  expect(await heightOf(known)).toBe(known.height)
})

test.each([
  ['no fields', {}],
  ['a list', []],
  ['numbers', { txid: 1, merklePath: 2 }],
  ['no hex', { txid: 'z'.repeat(64), merklePath: 'zz' }],
  ['a path of another transaction', { ...proofOf(transaction()), txid: '0'.repeat(64) }],
  ['an endless path', { txid: '0'.repeat(64), merklePath: '00'.repeat(20_000) }],
])('a stranger’s notice with %s is no error', async (_, body) => {
  const { url, errors } = await host({}, answering(400))
  expect((await ask(url, '/arc-ingest', posted(body))).status).toBe(400)
  expect(errors).toEqual([])
})
