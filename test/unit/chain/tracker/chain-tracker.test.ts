import { vi } from 'vitest'
import { OP } from '../../../../backend/src/protocol/script-walk.js'
import { readTransaction } from '../../../../backend/src/protocol/transaction.js'
import type { Verdict } from '../../../../src/chain/headers/header-chain.js'
import { openAskedHeaders } from '../../../../src/server/writer/open-headers.js'
import { expectError } from '../../../support/gateway/expect-error.js'
import {
  beefOf,
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
  OPEN_LOCK,
} from '../../../support/protocol/fake-chain.js'
import { encodeTransaction } from '../../../support/protocol/raw-transaction.js'
import { listening } from '../../../support/server/connections.js'
import { HeaderChain } from '../../../support/server/header-chain.js'
import { type HeaderService, type Mood, useHeaderServices } from '../../../support/server/header-service.js'
import {
  type Environment,
  type StartOptions,
  type TestServer,
  treeOf,
  untilReady,
  useServers,
} from '../../../support/server/test-server.js'
import { loopTurns, until } from '../../../support/server/waiting.js'

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
  /** Of the service. */
  url: string
  stopService(): Promise<void>
  /** Mines a transaction alone in a block, and gives its BEEF. */
  mined(transaction: FakeTransaction): Uint8Array
}

async function setUp(
  env: Environment = {},
  { path = '', ...options }: { path?: string; limits?: StartOptions['limits'] } = {},
): Promise<World> {
  const chain = new FakeChain()
  const headers = new HeaderChain()
  const { url, service, stop } = await services.start(headers)
  const settings = { CHAIN_TRACKER: `${url}${path}`, CHAIN_TRACKER_TIMEOUT_MS: '5000', ...env }
  const server = await servers.start({ ...treeOf(chain.deployment), ...settings }, options)
  const mined = (transaction: FakeTransaction): Uint8Array => {
    headers.mine([transaction])
    return headers.branch.beef(transaction)
  }
  return { chain, headers, service, server, stopService: stop, mined, url }
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
        error: expect.stringContaining('did not respond'),
        message: expect.stringContaining('did not respond'),
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
    world.service.asked.length = 0
    const beef = await mintOf(world, 3)
    const before = world.server.rows()
    expectError(await world.server.submit(beef), { status: 413, code: 'TOO_LARGE', overlay: true })
    // That they are too many is known before any is asked about.
    expect(world.service.asked.filter((question) => question !== 'tip')).toEqual([])
    expect(world.server.rows()).toEqual(before)
  })

  test('is asked for by no more than so many at once', async () => {
    const world = await setUp()
    const { server, service, chain, mined } = world
    await server.submit(mined(chain.genesis))
    let open = 0
    let most = 0
    service.onQuestion = () => {
      open++
      most = Math.max(most, open)
    }
    service.onAnswer = () => {
      open--
    }
    const notes = Array.from({ length: 12 }, () => mined(chain.inscribe({ contentType: 'text/plain' })))
    let release = (): void => {}
    service.held = new Promise((resolve) => {
      release = resolve
    })
    const submitted = notes.map((note) => server.submit(note, ['tm_ordinals']))
    await until(() => open >= 8, 'as many ask as may')
    await loopTurns()
    release()
    expect((await Promise.all(submitted)).map(({ status }) => status)).toEqual(notes.map(() => 200))
    expect(most).toBe(8)
  })

  test('is nothing where the bytes alone show that it is refused', async () => {
    const { server, service, chain, headers, mined } = await setUp({ MAX_SCRIPT_WORK: '1000000' })
    const costly = new Uint8Array(20_000).fill(0x61)
    const coin = chain.spend({ inputs: [], outputs: [{ satoshis: 1, lockingScript: costly }] })
    mined(coin)
    service.asked.length = 0
    const spender = chain.spend({
      inputs: [{ transaction: coin, vout: 0 }],
      outputs: [{ satoshis: 1, lockingScript: OPEN_LOCK }],
    })
    const answer = await server.submit(headers.branch.beef(spender, [coin]), ['tm_ordinals'])
    expectError(answer, { status: 400, code: 'BAD_BODY', overlay: true })
    expect(service.asked.filter((question) => question !== 'tip')).toEqual([])
  })
})

test('of the URL of the service no more is shown than its origin', async () => {
  const { chain, service, server, stopService, mined, url } = await setUp(
    {},
    { path: '/of/a-key-in-the-path' },
  )
  const beef = mined(chain.genesis)
  service.mood = 'fails'
  for (const stop of [async () => {}, stopService]) {
    await stop()
    const { status, body } = await server.submit(beef)
    expect(status).toBe(503)
    expect(body.toString()).toContain(`the chain tracker ${url} did not respond`)
    expect(body.toString()).not.toContain('a-key-in-the-path')
  }
})

test('a host is not ready while the service does not answer, and is again by itself when it does', async () => {
  const { chain, service, server, mined } = await setUp()
  const genesis = mined(chain.genesis)
  expect((await server.ask('/health/ready')).status).toBe(200)
  service.mood = 'fails'
  expect((await server.submit(genesis)).status).toBe(503)
  const answer = await server.ask('/health/ready')
  expectError(answer, {
    status: 503,
    code: 'NOT_READY',
    error: expect.stringMatching(/chain tracker http:.* since/),
  })
  expect((await server.ask('/health/live')).status).toBe(200)
  service.mood = 'answers'
  // Nobody submits anything meanwhile.
  await untilReady(server)
})

describe('a coinbase', () => {
  /** A transaction that spends the coinbase of a block with so many confirmations, and is in no block itself. */
  async function spentAfter(confirmations: number) {
    const world = await setUp()
    const { headers, chain } = world
    const { coinbase } = headers.mine()
    headers.grow(confirmations - 1)
    const raw = encodeTransaction({
      inputs: [{ outpoint: { txid: coinbase.txid, vout: 0 }, unlockingScript: Uint8Array.of(OP.ONE) }],
      outputs: [
        {
          satoshis: 1,
          lockingScript: inscriptionScript({ contentType: 'text/plain', body: Uint8Array.of(0x61) }),
        },
      ],
    })
    const spender = { raw, txid: readTransaction(raw).txid }
    return { ...world, chain, coinbase, beef: headers.branch.beef(spender, [coinbase]) }
  }

  test.each([100, 101, 300])('can be spent when it has %d confirmations', async (confirmations) => {
    const { server, beef } = await spentAfter(confirmations)
    expect(await server.submit(beef, ['tm_ordinals'])).toMatchObject({
      status: 200,
      json: { tm_ordinals: { outputsToAdmit: [0] } },
    })
  })

  test.each([1, 99])('cannot be spent when it has %d', async (confirmations) => {
    const { server, beef } = await spentAfter(confirmations)
    const { transactions: before } = server.rows()
    expectError(await server.submit(beef, ['tm_ordinals']), {
      status: 400,
      code: 'BAD_BODY',
      overlay: true,
      error: expect.stringMatching(new RegExp(`has ${confirmations} confirmations`)),
    })
    expect(server.rows().transactions).toEqual(before)
  })

  test.each([1, 300])('with %d confirmations is in its block', async (confirmations) => {
    const { server, headers, coinbase } = await spentAfter(confirmations)
    expect((await server.submit(headers.branch.beef(coinbase), ['tm_ordinals'])).status).toBe(200)
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

describe.each(['a block headers service', 'WhatsOnChain', 'Chaintracks'])('%s', (name) => {
  /** Where WhatsOnChain is asked, the chain of the test answers. */
  const withSource = async (
    work: (world: {
      headers: HeaderChain
      service: HeaderService
      verdict(height: number, root?: string): Promise<Verdict>
      tip(): Promise<number>
    }) => Promise<void>,
    chainTrackerTimeoutMs = 5000,
  ): Promise<void> => {
    const headers = new HeaderChain()
    headers.grow(12)
    const { url, service } = await services.start(headers)
    const chainTracker =
      name === 'WhatsOnChain' ? 'whatsonchain' : name === 'Chaintracks' ? `chaintracks=${url}` : url
    const source = openAskedHeaders({ chainTracker, chainTrackerTimeoutMs, network: 'main' })
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
      await source.close()
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
        const asked = [verdict(800_005), verdict(800_005, 'ab'.repeat(32)), tip()]
        for (const each of await Promise.allSettled(asked))
          expect(each).toMatchObject({ status: 'rejected', reason: { code: 'NOT_READY' } })
      }
    }, 300)
  })

  test('says nothing where it finds no such path', async () => {
    await withSource(async ({ service, verdict, tip }) => {
      service.mood = 'knows no path'
      await expect(verdict(800_005, 'ab'.repeat(32))).rejects.toMatchObject({ code: 'NOT_READY' })
      await expect(tip()).rejects.toMatchObject({ code: 'NOT_READY' })
    })
  })
})

test('of several blocks that a Block Headers Service lists at a height, the one in its longest chain counts', async () => {
  const headers = new HeaderChain()
  headers.grow(12)
  const { url, service } = await services.start(headers)
  const stale = headers.fork(800_006).mine().header
  service.stale = [stale]
  const source = openAskedHeaders({ chainTracker: url, chainTrackerTimeoutMs: 5000, network: 'main' })
  if (source === undefined) throw new Error('no source of headers')
  const { height } = stale
  expect(await source.verdict({ height, root: headers.rootAt(height) ?? '' })).toBe('yes')
  expect(await source.verdict({ height, root: stale.root })).toBe('no')
  await source.close()
})

test('the stream of a Chaintracks server says that there is a new tip', async () => {
  const headers = new HeaderChain()
  const { url, service } = await services.start(headers)
  const settings = { chainTracker: `chaintracks=${url}/`, chainTrackerTimeoutMs: 5000 }
  const source = openAskedHeaders({ ...settings, network: 'main' })
  if (source === undefined) throw new Error('no source of headers')
  const heights: number[] = []
  source.onTip(({ height }) => heights.push(height))
  await until(() => heights.length === 1)
  headers.grow(2)
  service.send('/v2/tip/stream', headers.bestTip)
  await until(() => heights.length === 2)
  expect(heights).toEqual([800_000, 800_002])
  expect(source.status()).toEqual({ height: 800_002 })
  await source.close()
  await until(() => service.streams.get('/v2/tip/stream')?.size === 0)
})

describe('of a service that is hostile', () => {
  const ask = async (url: string) => {
    const source = openAskedHeaders({ chainTracker: url, chainTrackerTimeoutMs: 600_000, network: 'main' })
    if (source === undefined) throw new Error('no source of headers')
    try {
      return await source.verdict({ height: 800_000, root: 'ab'.repeat(32) })
    } finally {
      await source.close()
    }
  }

  test('an answer without end is not read on', async () => {
    const chunk = Buffer.alloc(64 * 1024, ' ')
    let written = 0
    let closed: Promise<unknown> | undefined
    const { url, close } = await listening((_, response) => {
      closed = new Promise((resolve) => response.on('close', resolve))
      response.writeHead(200, { 'Content-Type': 'application/json' })
      const write = (): void => {
        do written += chunk.length
        while (response.write(chunk))
      }
      response.on('drain', write)
      write()
    })
    await expect(ask(url)).rejects.toMatchObject({
      code: 'NOT_READY',
      cause: { message: expect.stringContaining('more than 8388608 bytes') },
    })
    await closed
    // What stands in the buffers of the sockets comes on top.
    expect(written).toBeLessThan(32 * 1024 * 1024)
    await close()
  })

  test('a redirect is not followed', async () => {
    let asked = 0
    const inside = await listening((_, response) => {
      asked++
      response.end('{}')
    })
    const service = await listening((_, response) => response.writeHead(307, { Location: inside.url }).end())
    await expect(ask(service.url)).rejects.toMatchObject({ code: 'NOT_READY' })
    expect(asked).toBe(0)
    await Promise.all([inside.close(), service.close()])
  })
})

test('a tracker that nobody asked for a while is probed when readiness is read, by as many as do once', async () => {
  const { url: chainTracker, service } = await services.start(new HeaderChain())
  const source = openAskedHeaders({ chainTracker, chainTrackerTimeoutMs: 5000, network: 'main' })
  if (source === undefined) throw new Error('no source of headers')
  await source.currentHeight()
  service.mood = 'fails'
  expect(source.outage).toBeUndefined()
  expect(service.asked).toHaveLength(1)
  const later = performance.now() + 6000
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => later)
  for (let reads = 0; reads < 10; reads++) expect(source.outage).toBeUndefined()
  clock.mockRestore()
  await until(() => source.outage?.includes('has not responded since'))
  expect(service.asked).toHaveLength(2)
  await source.close()
})
