import { formatOutpoint, type Outpoint } from '../../../../backend/src/protocol/outpoint.js'
import type { FrontierCoin } from '../../../../backend/src/read/frontier.js'
import { type FollowedOrdinals, Sweep, type SweptStore } from '../../../../src/chain/follow/sweep.js'

// What is asked about, in which order, and how much of the store is in memory for that. Over a store that notes its reads.

const txidOf = (prefix: string, index: number): string =>
  prefix.padEnd(4, '0') + index.toString(16).padStart(60, '0')

/** A store of names of which the ordinals have not moved, and of as many other ordinals. */
class NotedStore {
  readonly reads: string[] = []
  readonly set = new Map<string, string>()
  largestPage = 0
  readonly names: string[]
  latest: FrontierCoin[] = []
  unproven: string[] = []

  constructor(count: number) {
    this.names = Array.from({ length: count }, (_, at) => `n${at.toString().padStart(6, '0')}`)
  }

  get store(): SweptStore {
    const page = <Item>(items: Item[], limit: number): Item[] => {
      const found = items.slice(0, limit)
      this.largestPage = Math.max(this.largestPage, found.length)
      return found
    }
    return {
      names: {
        liveNode: (domain: string) => ({ txid: txidOf('ab', this.names.indexOf(domain) + 1), vout: 0 }),
        byPrefix: async ({ after = '', limit }: { after?: string; limit: number }) => {
          this.reads.push(`names after ${after}`)
          const found = this.names.filter((name) => name > after)
          return page(found, limit).map((name) => ({
            name,
            outpoint: { txid: txidOf('cd', this.names.indexOf(name)), vout: 2 },
          }))
        },
        genuineOrigins: ([origin]: Outpoint[]) => (origin?.txid.startsWith('cd') ? [{}] : []),
      },
      ordinals: {
        currentOutput: async (origin: Outpoint) => origin,
        at: (outpoint: Outpoint) => ({ origin: outpoint }),
      },
      frontier: {
        tips: ({ after, limit }: { after?: Outpoint; limit: number }) => {
          this.reads.push('tips')
          const all = this.names.map((_, at) => ({ txid: txidOf('ef', at), vout: 0 }))
          const tips = page(
            all.filter(({ txid }) => after === undefined || txid > after.txid),
            limit,
          )
          const next = tips.length === limit ? tips.at(-1) : undefined
          return { tips, ...(next && { next }) }
        },
        latest: () => this.latest,
        unproven: ({ after = '', limit }: { after?: string; limit: number }) => {
          const txids = page(
            this.unproven.filter((txid) => txid > after),
            limit,
          )
          const next = txids.length === limit ? txids.at(-1) : undefined
          return { txids, ...(next && { next }) }
        },
      },
      settings: {
        get: async (name: string) => this.set.get(name),
        set: async (name: string, value: string) => void this.set.set(name, value),
      },
    } as unknown as SweptStore
  }

  sweep(ordinals: FollowedOrdinals = 'names'): Sweep {
    return new Sweep(this.store, ordinals)
  }
}

async function take<Item>(items: AsyncGenerator<Item>, count = Number.POSITIVE_INFINITY): Promise<Item[]> {
  const taken: Item[] = []
  while (taken.length < count) {
    const { done, value } = await items.next()
    if (done === true) break
    taken.push(value)
  }
  return taken
}

const shown = ({ kind, outpoint }: FrontierCoin): string => `${kind} ${formatOutpoint(outpoint)}`

test.each<[FollowedOrdinals, number]>([
  ['names', 1 + 2 * 500],
  ['none', 1 + 500],
  ['all', 1 + 500 + 500],
])('with %s, a rotation comes by each coin once', async (ordinals, count) => {
  const sweep = new NotedStore(500).sweep(ordinals)
  const first = (await take(sweep.rotation())).map(shown)
  expect(new Set(first).size).toBe(count)
  expect(first).toHaveLength(count)
  expect((await take(sweep.rotation())).map(shown)).toEqual(first)
})

test('pages are read when they are needed, and are short', async () => {
  const noted = new NotedStore(5000)
  const coins = noted.sweep().rotation()
  await take(coins, 10)
  expect(noted.reads).toEqual(['names after '])
  await take(coins)
  expect(noted.reads).toHaveLength(26)
  expect(noted.largestPage).toBe(200)
})

test.each<[FollowedOrdinals, number]>([
  ['names', 700],
  ['all', 200],
  ['all', 700],
])(
  'with %s, what another process left after %s coins is continued, and comes by each coin',
  async (ordinals, taken) => {
    const noted = new NotedStore(500)
    const first = noted.sweep(ordinals)
    const before = (await take(first.rotation(), taken)).map(shown)
    await first.save()
    const second = noted.sweep(ordinals)
    await second.resume()
    const after = (await take(second.rotation())).map(shown)
    // A name or two are asked about again.
    expect(before.slice(0, -4).filter((coin) => after.slice(0, 100).includes(coin))).toEqual([])
    const all = (await take(noted.sweep(ordinals).rotation())).map(shown)
    expect([...new Set(after)].sort()).toEqual(all.sort())
  },
)

test('of the latest coins, nodes come first, ordinals that are not followed are left out, and there are 500 of each', async () => {
  const noted = new NotedStore(0)
  const name: FrontierCoin = { kind: 'ordinal', outpoint: { txid: txidOf('cd', 1), vout: 2 } }
  const other: FrontierCoin = { kind: 'ordinal', outpoint: { txid: txidOf('ee', 1), vout: 0 } }
  const node: FrontierCoin = { kind: 'node', outpoint: { txid: txidOf('ab', 1), vout: 0 } }
  noted.latest = [other, name, node]
  expect(await take(noted.sweep('names').latest())).toEqual([node, name])
  expect(await take(noted.sweep('none').latest())).toEqual([node])
  expect(await take(noted.sweep('all').latest())).toEqual([node, other, name])
  noted.latest = Array.from({ length: 5000 }, (_, at) => (at % 2 === 0 ? node : name))
  const many = await take(noted.sweep().latest())
  expect(many.map(({ kind }) => kind)).toEqual([...Array(500).fill('node'), ...Array(500).fill('ordinal')])
})

test('of many unproven transactions, each round comes by the next 300', async () => {
  const noted = new NotedStore(0)
  noted.unproven = Array.from({ length: 700 }, (_, at) => txidOf('aa', at))
  const sweep = noted.sweep()
  const rounds: string[][] = []
  for (let round = 0; round < 5; round++) rounds.push(await take(sweep.unprovenTransactions()))
  expect(rounds.slice(0, 2).flat()).toEqual(noted.unproven.slice(0, 600))
  expect(new Set(rounds.slice(0, 3).flat())).toEqual(new Set(noted.unproven))
  expect(Math.max(...rounds.map(({ length }) => length))).toBe(300)
  noted.unproven = noted.unproven.slice(0, 2)
  await take(sweep.unprovenTransactions())
  expect(await take(sweep.unprovenTransactions())).toEqual(noted.unproven)
  expect(sweep.unproven).toBe(2)
})
