import type { TransactionRecord } from '../../../../backend/src/graph/records.js'
import { Feed, type FeedOptions } from '../../../../src/chain/follow/feed.js'
import { ChainSourceError } from '../../../../src/chain/sources/errors.js'
import { openSources } from '../../../../src/chain/sources/open-sources.js'
import { type ChainService, ChainServices } from '../../../support/follow/chain-services.js'
import { FakeChain, type FakeTransaction, p2pkh } from '../../../support/protocol/fake-chain.js'
import { listening } from '../../../support/server/connections.js'
import { HeaderChain } from '../../../support/server/header-chain.js'

const ID = 'c2f8'
const LIMIT = 100_000

class World {
  readonly chain = new HeaderChain()
  readonly services = new ChainServices(this.chain)
  readonly service: ChainService = this.services.junglebus
  readonly settings = new Map<string, string>()
  readonly received: TransactionRecord[] = []
  readonly warnings: string[] = []
  readonly first = this.chain.bestTip.height
  private readonly transactions = new FakeChain()
  /** What the subscription chooses. */
  readonly coins = new Set<string>()
  /** How often the feed was read to its end. */
  readings = 0
  private waiting: { isDone: () => boolean; resolve: () => void }[] = []

  constructor() {
    this.services.subscribe(ID, ({ txid }) => this.coins.has(txid))
  }

  /** Mines a block with so many transactions that the subscription chooses, and one that it does not. */
  mine(count: number): FakeTransaction[] {
    const make = () =>
      this.transactions.spend({ inputs: [], outputs: [{ satoshis: 1, lockingScript: p2pkh(1) }] })
    const chosen = Array.from({ length: count }, make)
    const all = [make(), ...chosen]
    for (const { txid } of chosen) this.coins.add(txid)
    this.services.know(...all)
    this.chain.mine(all)
    return chosen
  }

  get txids(): string[] {
    return this.received.map(({ txid }) => txid)
  }

  async open(options: Partial<FeedOptions> = {}): Promise<Feed> {
    const { url, close } = await listening(this.services.listener('junglebus'))
    const sources = openSources({ addresses: [{ kind: 'junglebus', url }], rate: 10_000, firstRest: 1 })
    const { junglebus } = sources
    if (junglebus === undefined) throw new Error('there is no JungleBus')
    const ended = (): void => {
      this.readings++
      this.look()
    }
    const feed = new Feed({
      ...{ junglebus, subscription: ID, source: sources, maxBytes: LIMIT },
      settings: {
        get: async (name) => this.settings.get(name),
        set: async (name, value) => {
          this.settings.set(name, value)
        },
      },
      tip: () => junglebus.height(),
      firstHeight: async () => this.first,
      logger: {
        warn: (message: unknown) => {
          this.warnings.push(String(message))
          this.look()
        },
      },
      onTransaction: async (record) => {
        this.received.push(record)
        this.look()
      },
      ...options,
      get interval() {
        ended()
        return 3_600_000
      },
    })
    onTestFinished(async () => {
      await sources.close()
      await feed.stop()
      await close()
    })
    feed.start()
    return feed
  }

  /** Waits for something that is so after a transaction was received, or after a question. */
  async until(isDone: () => boolean): Promise<void> {
    this.service.onQuestion = () => this.look()
    if (!isDone()) await new Promise<void>((resolve) => this.waiting.push({ isDone, resolve }))
  }

  look(): void {
    for (const { isDone, resolve } of this.waiting) if (isDone()) resolve()
    this.waiting = this.waiting.filter(({ isDone }) => !isDone())
  }
}

function txidsOf(...transactions: FakeTransaction[][]): string[] {
  return transactions.flat().map(({ txid }) => txid)
}

describe.each([
  ['of one block', false],
  ['of all blocks from one on', true],
])('a subscription with pages %s', (_, spansBlocks) => {
  test('is read in the order of the chain, page by page, with proofs, and on with each block', async () => {
    const world = new World()
    Object.assign(world.service.feed, { page: 2, spansBlocks })
    const mined = [world.mine(3), world.mine(0), world.mine(1)]
    const feed = await world.open()
    await world.until(() => world.received.length === 4)
    expect(world.txids).toEqual(txidsOf(...mined))
    for (const { txid, proof } of world.received)
      expect(proof).toEqual(world.services.facts.transaction(txid)?.proof)
    // All of it came with the pages.
    expect(world.service.asked.filter((path) => !/from_block|block_header/.test(path))).toEqual([])
    const next = world.mine(5)
    feed.onBlock()
    await world.until(() => world.received.length === 9)
    expect(world.txids).toEqual(txidsOf(...mined, next))
    expect(world.warnings).toEqual([])
  })

  test('continues after a restart from a few blocks behind the tip', async () => {
    const world = new World()
    Object.assign(world.service.feed, { page: 10, spansBlocks })
    const early = world.mine(1)
    for (let count = 0; count < 20; count++) world.mine(0)
    const late = world.mine(1)
    const feed = await world.open()
    await world.until(() => world.received.length === 2)
    world.mine(0)
    const stored = new Promise<void>((resolve) => {
      const set = world.settings.set.bind(world.settings)
      world.settings.set = (name, value) => {
        resolve()
        return set(name, value)
      }
    })
    feed.onBlock()
    await stored
    await feed.stop()
    const before = world.service.asked.length
    const again = await world.open()
    await world.until(() => world.received.length === 3)
    await again.stop()
    expect(world.txids).toEqual(txidsOf(early, late, late))
    const asked = world.service.asked
      .slice(before)
      .flatMap((path) => [...path.matchAll(/height=(\d+)/g)].map(([, height]) => Number(height)))
    expect(Math.min(...asked)).toBeGreaterThan(world.first + 10)
    expect(Math.min(...asked)).toBeLessThanOrEqual(world.chain.bestTip.height - 6)
  })
})

test('a transaction that no source knows yet is fetched when its block is read again', async () => {
  const world = new World()
  const [first] = world.mine(1)
  const { txid } = first as FakeTransaction
  world.service.feed.isEmpty = () => true
  world.service.forget(txid)
  const feed = await world.open()
  await world.until(() => world.service.asked.some((path) => path.includes(`/proof/${txid}`)))
  await world.until(() => world.readings === 1)
  world.service.repent()
  const [second] = world.mine(1)
  feed.onBlock()
  await world.until(() => world.received.length === 2)
  expect(world.txids).toEqual([txid, second?.txid])
})

test('what a subscription has of the last blocks only later is read with the next block', async () => {
  const world = new World()
  const [late] = world.mine(1)
  world.coins.clear()
  for (let count = 0; count < 3; count++) world.mine(0)
  const feed = await world.open()
  await world.until(() => world.readings === 1)
  expect(world.service.asked).toContainEqual(expect.stringContaining(`height=${world.chain.bestTip.height}&`))
  world.coins.add(late?.txid ?? '')
  world.mine(0)
  feed.onBlock()
  await world.until(() => world.received.length === 1)
  expect(world.txids).toEqual([late?.txid])
})

test('transactions that arrive without bytes are fetched, those that are known already not', async () => {
  const world = new World()
  world.service.feed.isEmpty = () => true
  const [known, other] = world.mine(2)
  await world.open({ isKnown: async (txid) => txid === known?.txid })
  await world.until(() => world.received.length === 1)
  expect(world.received).toEqual([world.services.facts.transaction(other?.txid ?? '')])
  expect(world.service.asked.some((path) => path.includes(known?.txid ?? ''))).toBe(false)
})

test('a page that is too long is read without the bytes', async () => {
  const world = new World()
  const mined = world.mine(1)
  world.service.fault = (path) =>
    path.includes('/from_block/') && !path.includes('/lite/') ? 'long' : undefined
  await world.open()
  await world.until(() => world.received.length === 1)
  expect(world.txids).toEqual(txidsOf(mined))
})

test('what a block of another branch has is passed on too', async () => {
  const world = new World()
  const fork = world.chain.fork(world.first)
  const mined = world.mine(1)
  for (let count = 0; count < 10; count++) world.mine(0)
  const feed = await world.open()
  const { height } = world.chain.bestTip
  await world.until(() => world.service.asked.some((path) => path.includes(`height=${height}&`)))
  // Deeper than what is read again in any case.
  fork.mine([])
  fork.mine(mined)
  for (let count = 0; count < 20; count++) fork.mine([])
  world.chain.reorg(fork)
  feed.onBlock({ forkedAt: world.first + 1 })
  await world.until(() => world.received.length === 2)
  expect(world.received.map(({ proof }) => proof?.height)).toEqual([world.first + 1, world.first + 2])
})

test.each<[string, string]>([
  ['that repeats itself', JSON.stringify([{ id: '12'.repeat(32), block_height: 0, block_index: 0 }])],
  ['that says nothing', 'null'],
  ['with malformed entries', `[{"id":"x"},null,7,{"id":"${'12'.repeat(32)}","block_height":-1}]`],
])('a feed %s comes to an end, and is read on with the next block', async (_, body) => {
  const world = new World()
  const mined = world.mine(1)
  world.service.fault = (path) =>
    path.includes('/from_block/') ? { kind: 'body', body: Buffer.from(body) } : undefined
  const feed = await world.open()
  // It looks for more at each height up to the tip.
  await world.until(() =>
    world.service.asked.some((path) => path.includes(`height=${world.chain.bestTip.height}&`)),
  )
  world.service.fault = () => undefined
  feed.onBlock()
  world.chain.mine()
  feed.onBlock()
  await world.until(() => world.received.length === 1)
  expect(world.txids).toEqual(txidsOf(mined))
})

test('a feed that makes up transactions without end is left alone', async () => {
  const world = new World()
  world.chain.mine()
  let made = 0
  world.service.fault = (path) => {
    if (!path.includes('/from_block/')) return undefined
    const entries = Array.from({ length: 30 }, () => ({
      id: (made++).toString(16).padStart(64, 'a'),
      ...{ block_height: world.chain.bestTip.height, block_index: made, transaction: '', merkle_proof: '' },
    }))
    return { kind: 'body', body: Buffer.from(JSON.stringify(entries)) }
  }
  await world.open()
  await world.until(() => world.readings === 1)
  expect(world.received).toEqual([])
  expect(world.warnings).toEqual([expect.stringContaining('no source knows')])
  expect(made).toBeLessThanOrEqual(150)
})

test('a feed that repeats a transaction at ever later places of a block is left alone', async () => {
  const world = new World()
  const [mined] = world.mine(1)
  const { height } = world.chain.bestTip
  let pages = 0
  world.service.fault = (path) => {
    if (!path.includes('/from_block/')) return undefined
    const index = Number(/last_idx=(\d+)/.exec(path)?.[1]) + 1
    const entry = { id: mined?.txid, block_height: height, block_index: index, block_hash: `${++pages}` }
    return { kind: 'body', body: Buffer.from(pages > 1000 ? 'null' : JSON.stringify([entry])) }
  }
  await world.open()
  await world.until(() => world.warnings.length > 0 || pages > 1000)
  expect(pages).toBeLessThan(200)
  expect(world.txids).toEqual([mined?.txid])
})

test('a transaction that its source fails to return is fetched with the next reading', async () => {
  const world = new World()
  world.service.feed.isEmpty = () => true
  const mined = world.mine(2)
  let failed = 0
  const feed = await world.open({
    source: {
      transaction: async (txid) => {
        if (failed > 0) return world.services.facts.transaction(txid)
        failed++
        world.look()
        throw new ChainSourceError('NO_ANSWER', 'it does not answer')
      },
    },
  })
  await world.until(() => failed === 1)
  feed.onBlock()
  await world.until(() => world.received.length === 2)
  expect(world.txids).toEqual(txidsOf(mined))
})

test('a transaction that cannot be stored does not hold up the others', async () => {
  const world = new World()
  const mined = world.mine(2)
  const tried: string[] = []
  await world.open({
    onTransaction: async (record) => {
      tried.push(record.txid)
      world.look()
      if (record.txid === mined[0]?.txid) throw new Error('the disk is full')
    },
  })
  await world.until(() => world.readings === 1)
  expect(tried).toEqual(txidsOf(mined))
  expect(world.warnings).toEqual(['feed: the disk is full'])
})

test('a feed that knows the height of the chain from elsewhere reads no further', async () => {
  const world = new World()
  const mined = world.mine(1)
  let tip = world.first
  const feed = await world.open({ tip: async () => tip })
  await world.until(() => world.service.asked.length === 1)
  tip++
  feed.onBlock()
  await world.until(() => world.received.length === 1)
  expect(world.txids).toEqual(txidsOf(mined))
  const heights = world.service.asked.map((path) => /height=(\d+)/.exec(path)?.[1])
  expect(heights[0]).toBe(String(world.first))
  expect(world.service.asked.some((path) => path.includes('block_header'))).toBe(false)
})

test.each(['{}', '{"height":-1}', '[]', 'null'])(
  'the tip %s of a JungleBus is not believed',
  async (body) => {
    const world = new World()
    world.service.fault = () => ({ kind: 'body', body: Buffer.from(body) })
    await world.open()
    await world.until(() => world.warnings.length > 0)
    expect(world.warnings[0]).toContain('returned no block header for the tip')
  },
)

test('a subscription that the source does not know is reported', async () => {
  const world = new World()
  await world.open({ subscription: 'other' })
  await world.until(() => world.warnings.length > 0)
  expect(world.warnings[0]).toContain('does not know the subscription other')
})

test('a stopped feed passes nothing on', async () => {
  const world = new World()
  world.mine(3)
  let stopped: Promise<void> | undefined
  const feed = await world.open({
    onTransaction: async (record) => {
      world.received.push(record)
      stopped = feed.stop()
      world.look()
    },
  })
  await world.until(() => stopped !== undefined)
  await stopped
  expect(world.received).toHaveLength(1)
})
