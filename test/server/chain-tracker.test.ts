import { openHeadersSource, type Verdict } from '../../src/server/chain-tracker.js'
import { FakeChain, type FakeTransaction, OPEN_LOCK } from '../support/fake-chain.js'
import { HeaderChain } from '../support/header-chain.js'
import { type HeaderService, type Mood, useHeaderServices } from '../support/header-service.js'
import { type TestServer, treeOf, useServers } from '../support/test-server.js'

// Beyond the machine stands a service of block headers: here one that speaks as the real ones do, with a chain that a test
// makes.

const servers = useServers()
const services = useHeaderServices()

const FAILURES: Mood[] = ['fails', 'hangs up', 'talks nonsense', 'answers something else', 'says nothing']

interface World {
  chain: FakeChain
  headers: HeaderChain
  service: HeaderService
  server: TestServer
  stopService(): Promise<void>
  /** Mines a transaction alone in a block, and gives its BEEF. */
  mined(transaction: FakeTransaction): Uint8Array
}

async function setUp(): Promise<World> {
  const chain = new FakeChain()
  const headers = new HeaderChain()
  const { url: CHAIN_TRACKER, service, stop } = await services.start(headers)
  const patience = { CHAIN_TRACKER_TIMEOUT_MS: '5000' }
  const server = await servers.start({ ...treeOf(chain.deployment), CHAIN_TRACKER, ...patience })
  const mined = (transaction: FakeTransaction): Uint8Array => {
    headers.mine([transaction])
    return headers.branch.beef(transaction)
  }
  return { chain, headers, service, server, stopService: stop, mined }
}

test('a proof that the headers confirm is taken', async () => {
  const { chain, service, server, mined } = await setUp()
  const mint = chain.mint('a')
  for (const transaction of [chain.genesis, mint])
    expect((await server.submit(mined(transaction))).status).toBe(200)
  expect((await server.ask('/svc/names/origin/a')).json).toEqual({ name: 'a', outpoint: mint.outpoint(2) })
  expect(service.asked.filter((question) => question !== 'tip')).toHaveLength(2)
})

test('of many transactions in one block, one is asked about', async () => {
  const { chain, headers, service, server, mined } = await setUp()
  await server.submit(mined(chain.genesis))
  const coins = [1, 2, 3].map(() =>
    chain.spend({ inputs: [], outputs: [{ satoshis: 1000, lockingScript: OPEN_LOCK }] }),
  )
  const block = headers.mine(coins)
  const mint = chain.mint('a', { funding: coins.map((transaction) => ({ transaction, vout: 0 })) })
  const { status } = await server.submit(headers.branch.beef(mint, [chain.genesis, ...coins]))
  expect(status).toBe(200)
  const { height, root } = block.header
  expect(service.asked.filter((question) => question === `${height} ${root}`)).toHaveLength(1)
})

test.each([
  ['a block that has another root', 800_002],
  ['a height without a block', 800_090],
])('a proof for %s is refused, and nothing is stored', async (_, height) => {
  const { chain, headers, server, mined } = await setUp()
  await server.submit(mined(chain.genesis))
  const mint = chain.mint('a')
  const elsewhere = new HeaderChain(height - 1)
  elsewhere.mine([mint])
  headers.grow(5)
  const before = server.rows()
  const { status, headers: head, json } = await server.submit(elsewhere.branch.beef(mint))
  expect(status).toBe(400)
  expect(json).toMatchObject({ code: 'BAD_BODY', status: 'error', error: expect.any(String) })
  expect(head['cache-control']).toBe('no-store')
  expect(server.rows()).toEqual(before)
  expect((await server.ask('/svc/names/origin/a')).status).toBe(404)

  expect((await server.submit(mined(mint))).json).toMatchObject({ tm_names: { outputsToAdmit: [0, 1, 2] } })
})

test.each(FAILURES)(
  'while the service %s a submission may be tried again, and then it is taken',
  async (mood) => {
    const { chain, service, server, mined } = await setUp()
    await server.submit(mined(chain.genesis))
    const mint = mined(chain.mint('a'))
    const before = server.rows()
    service.mood = mood
    const { status, headers: head, json } = await server.submit(mint)
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

    service.mood = 'answers'
    expect((await server.submit(mint)).json).toMatchObject({ tm_names: { outputsToAdmit: [0, 1, 2] } })
    expect((await server.ask('/svc/names/origin/a')).status).toBe(200)
  },
)

test('a service that is not there is the same as one that fails', async () => {
  const { chain, server, stopService, mined } = await setUp()
  await stopService()
  const before = server.rows()
  const { status, json } = await server.submit(mined(chain.genesis))
  expect(status).toBe(503)
  expect(json).toMatchObject({ code: 'NOT_READY' })
  expect(server.rows()).toEqual(before)
})

describe.each(['a block headers service', 'WhatsOnChain'])('%s', (name) => {
  /** Where WhatsOnChain is asked, the chain of the test answers. */
  const withSource = async (
    work: (world: {
      headers: HeaderChain
      service: HeaderService
      verdict(height: number, root?: string): Promise<Verdict>
      tip(): Promise<number>
    }) => Promise<void>,
  ): Promise<void> => {
    const headers = new HeaderChain()
    headers.grow(12)
    const { url, service } = await services.start(headers)
    const chainTracker = name === 'WhatsOnChain' ? 'whatsonchain' : url
    const source = openHeadersSource({ chainTracker, chainTrackerTimeout: 5000, network: 'main' })
    if (source === undefined) throw new Error('no source of headers')
    const { fetch } = globalThis
    globalThis.fetch = (asked, options) =>
      fetch(String(asked).replace('https://api.whatsonchain.com', url), options)
    try {
      const verdict = (height: number, root = headers.rootAt(height) ?? ''): Promise<Verdict> =>
        source.verdict({ height, root })
      await work({ headers, service, verdict, tip: () => source.currentHeight() })
    } finally {
      globalThis.fetch = fetch
    }
  }

  test('says yes of what its chain has, no of another root, and of what is to come that it is unknown', async () => {
    await withSource(async ({ headers, service, verdict, tip }) => {
      expect(await tip()).toBe(800_012)
      expect(await verdict(800_012)).toBe('yes')
      expect(await verdict(800_011, headers.rootAt(800_012))).toBe('no')
      expect(await verdict(800_013, headers.rootAt(800_012))).toBe('unknown')
      expect(await verdict(900_000, headers.rootAt(800_012))).toBe('unknown')
      service.syncedTo = 800_004
      expect(await verdict(800_012)).toBe('unknown')
      expect(await tip()).toBe(800_004)
    })
  })

  test('says no only of what it was asked', async () => {
    await withSource(async ({ service, verdict, tip }) => {
      for (const mood of FAILURES) {
        service.mood = mood
        await expect(verdict(800_005)).rejects.toMatchObject({ code: 'NOT_READY' })
        await expect(verdict(800_005, 'ab'.repeat(32))).rejects.toMatchObject({ code: 'NOT_READY' })
        await expect(tip()).rejects.toMatchObject({ code: 'NOT_READY' })
      }
    })
  })

  test('says nothing where it finds no such path', async () => {
    await withSource(async ({ service, verdict, tip }) => {
      service.mood = 'knows no path'
      const asked = verdict(800_005, 'ab'.repeat(32))
      if (name === 'WhatsOnChain') expect(await asked).toBe('unknown')
      else await expect(asked).rejects.toMatchObject({ code: 'NOT_READY' })
      await expect(tip()).rejects.toMatchObject({ code: 'NOT_READY' })
    })
  })
})
