import { vi } from 'vitest'
import { OP } from '../../../../backend/src/protocol/script-walk.js'
import { readTransaction } from '../../../../backend/src/protocol/transaction.js'
import { GivenHeaders } from '../../../../src/chain/tracker/given-headers.js'
import { expectError } from '../../../support/gateway/expect-error.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  OPEN_LOCK,
} from '../../../support/protocol/fake-chain.js'
import { encodeTransaction } from '../../../support/protocol/raw-transaction.js'
import { HeaderChain } from '../../../support/server/header-chain.js'
import { HostTracker } from '../../../support/server/host-tracker.js'
import {
  type Environment,
  type StartOptions,
  type TestServer,
  treeOf,
  untilReady,
  useServers,
} from '../../../support/server/test-server.js'
import { passTime, until } from '../../../support/server/waiting.js'

// What a host does with what its chain tracker says.

const servers = useServers()

interface World {
  chain: FakeChain
  headers: HeaderChain
  tracker: HostTracker
  server: TestServer
  /** Mines a transaction alone in a block, and gives its BEEF. */
  mined(transaction: FakeTransaction): Uint8Array
}

async function setUp(env: Environment = {}, options: StartOptions = {}): Promise<World> {
  const chain = new FakeChain()
  const headers = new HeaderChain()
  const tracker = new HostTracker(headers)
  const settings = { ...treeOf(chain.deployment), CHAIN_TRACKER_TIMEOUT_MS: '2000', ...env }
  const server = await servers.start(settings, { tracker, ...options })
  const mined = (transaction: FakeTransaction): Uint8Array => {
    headers.mine([transaction])
    return headers.branch.beef(transaction)
  }
  return { chain, headers, tracker, server, mined }
}

test('of many transactions in one block, one is asked about', async () => {
  const { chain, headers, tracker, server, mined } = await setUp()
  await server.submit(mined(chain.genesis))
  const coins = [1, 2, 3].map(() =>
    chain.spend({ inputs: [], outputs: [{ satoshis: 1000, lockingScript: OPEN_LOCK }] }),
  )
  const block = headers.mine(coins)
  const mint = chain.mint('a', { funding: coins.map((transaction) => ({ transaction, vout: 0 })) })
  await server.take(headers.branch.beef(mint, [chain.genesis, ...coins]))
  const { height, root } = block.header
  expect(tracker.asked.filter((question) => question === `${height} ${root}`)).toHaveLength(1)
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

test.each<HostTracker['mood']>(['fails', 'says nothing'])(
  'while the tracker %s a submission may be tried again, and then it is taken',
  async (mood) => {
    const { chain, tracker, server, mined } = await setUp()
    await server.submit(mined(chain.genesis))
    const mint = mined(chain.mint('a'))
    const before = server.rows()
    tracker.mood = mood
    const { status, headers: head, json } = await server.submit(mint)
    const error = expect.stringContaining('did not respond')
    expect({ status, json }).toEqual({
      ...{ status: 503, json: { code: 'NOT_READY', status: 'error', error, message: error } },
    })
    expect(head['cache-control']).toBe('no-store')
    expect(server.rows()).toEqual(before)
    // Reading needs no headers.
    expect((await server.ask('/svc/names/mine/a')).status).toBe(200)

    tracker.mood = 'answers'
    expect((await server.submit(mint)).json).toMatchObject({ tm_names: { outputsToAdmit: [0, 1, 2] } })
    expect((await server.ask('/svc/names/origin/a')).status).toBe(200)
  },
)

describe('what a submission asks about', () => {
  /** A mint whose coins are each in a block of their own. */
  async function mintOf(world: World, blocks: number): Promise<Uint8Array> {
    const { chain, headers } = world
    const coins = Array.from({ length: blocks }, () =>
      chain.spend({ inputs: [], outputs: [{ satoshis: 1000, lockingScript: OPEN_LOCK }] }),
    )
    for (const coin of coins) headers.mine([coin])
    const funding = coins.map((transaction) => ({ transaction, vout: 0 }))
    return headers.branch.beef(chain.mint('a', { funding }), [chain.genesis, ...coins])
  }

  test('is so many blocks and no more', async () => {
    const world = await setUp({}, { limits: { maxTrackerBlocks: 3 } })
    await world.server.submit(world.mined(world.chain.genesis))
    world.tracker.asked.length = 0
    const beef = await mintOf(world, 3)
    const before = world.server.rows()
    expectError(await world.server.submit(beef), { status: 413, code: 'TOO_LARGE', overlay: true })
    // That they are too many is known before any is asked about.
    expect(world.tracker.asked.filter((question) => question !== 'tip')).toEqual([])
    expect(world.server.rows()).toEqual(before)
  })

  test('is nothing where the bytes alone show that it is refused', async () => {
    const { server, tracker, chain, headers, mined } = await setUp({ MAX_SCRIPT_WORK: '1000000' })
    const costly = new Uint8Array(20_000).fill(0x61)
    const coin = chain.spend({ inputs: [], outputs: [{ satoshis: 1, lockingScript: costly }] })
    mined(coin)
    tracker.asked.length = 0
    const spender = chain.move(coin, 0, OPEN_LOCK)
    const answer = await server.submit(headers.branch.beef(spender, [coin]), ['tm_ordinals'])
    expectError(answer, { status: 400, code: 'BAD_BODY', overlay: true })
    expect(tracker.asked.filter((question) => question !== 'tip')).toEqual([])
  })
})

describe('a coinbase', () => {
  const A = Uint8Array.of(0x61)
  /** A transaction that spends the coinbase of a block with so many confirmations, and is in no block itself. */
  async function spentAfter(confirmations: number) {
    const world = await setUp()
    const { headers, chain } = world
    const { coinbase } = headers.mine()
    headers.grow(confirmations - 1)
    const raw = encodeTransaction({
      inputs: [{ outpoint: { txid: coinbase.txid, vout: 0 }, unlockingScript: Uint8Array.of(OP.ONE) }],
      outputs: [{ satoshis: 1, lockingScript: inscriptionScript({ contentType: 'text/plain', body: A }) }],
    })
    const spender = { raw, txid: readTransaction(raw).txid }
    return { ...world, chain, coinbase, beef: headers.branch.beef(spender, [coinbase]) }
  }

  test('can be spent when it has 100 confirmations, and not when it has 99', async () => {
    const { server, beef } = await spentAfter(100)
    expect((await server.submit(beef, ['tm_ordinals'])).json).toEqual({
      tm_ordinals: expect.objectContaining({ outputsToAdmit: [0] }),
    })
    const young = await spentAfter(99)
    const { transactions: before } = young.server.rows()
    const error = expect.stringMatching(/has 99 confirmations/)
    const answer = await young.server.submit(young.beef, ['tm_ordinals'])
    expectError(answer, { status: 400, code: 'BAD_BODY', overlay: true, error })
    expect(young.server.rows().transactions).toEqual(before)
  })
})

test('nothing but a coinbase is the first of a block', async () => {
  const { chain, server } = await setUp()
  const note = chain.inscribe({ contentType: 'text/plain' })
  expectError(await server.submit(beefOf(note), ['tm_ordinals']), {
    status: 400,
    code: 'BAD_BODY',
    overlay: true,
    error: expect.stringMatching(/a coinbase, and nothing else, is the first transaction of a block/),
  })
})

test('a tracker that nobody asked for a while is probed when readiness is read, by as many as do once', async () => {
  const tracker = new HostTracker(new HeaderChain())
  const headers = new GivenHeaders(tracker, 10_000)
  const height = await headers.currentHeight()
  const tips: object[] = []
  headers.onTip((tip) => tips.push(tip))
  expect(tips).toEqual([{ height }])
  tracker.mood = 'fails'
  tracker.asked.length = 0
  expect(headers.outage).toBeUndefined()
  expect(tracker.asked).toEqual([])
  const later = performance.now() + 6000
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => later)
  for (let reads = 0; reads < 10; reads++) expect(headers.outage).toBeUndefined()
  clock.mockRestore()
  await until(() => headers.outage?.includes('has not responded since'))
  expect(tracker.asked).toEqual(['tip'])
})

test('a host is not ready while the tracker does not answer, and is again by itself when it does', async () => {
  const { chain, tracker, server, mined } = await setUp()
  const genesis = mined(chain.genesis)
  await untilReady(server)
  tracker.mood = 'fails'
  expect((await server.submit(genesis)).status).toBe(503)
  const error = expect.stringMatching(/^the chain tracker of the host has not responded since/)
  const answer = await server.ask('/health/ready')
  expectError(answer, { status: 503, code: 'NOT_READY', error })
  expect((await server.ask('/health')).json).toMatchObject({
    ...{ ready: false, reasons: { tracker: error } },
    headers: { lastError: { message: 'the tracker fails' } },
  })
  expect((await server.ask('/health/live')).status).toBe(200)
  tracker.mood = 'answers'
  // Nobody submits anything meanwhile.
  passTime(5000)
  await untilReady(server)
})
