import { formatOutpoint } from '../../../../backend/src/protocol/outpoint.js'
import {
  type Crawled,
  type FollowOptions,
  type FollowWorld,
  useFollowWorlds,
} from '../../../support/follow/follow-world.js'
import type { Fault } from '../../../support/follow/junglebus.js'
import { recordOf } from '../../../support/protocol/block.js'
import { type FakeTransaction, OPEN_LOCK } from '../../../support/protocol/fake-chain.js'
import { storedRows } from '../../../support/storage/fact-rows.js'

const { world, folder } = useFollowWorlds()

/**
 * Mints and transfers of the tree: all but the genesis, what pays, the burn and what is no mint. A transfer is not counted if
 * another one that it places came first, and brought it along.
 */
const MINTS = 11
const TRANSFERS = 10

test('what is there after a crawl is what is there after an import of all of it', async () => {
  const { tree, crawl, imported } = await world()
  const dataDir = await folder()
  const { report, failures, unproven } = await crawl(dataDir)
  expect(report).toMatchObject({ mints: MINTS, deadNodes: 1, lost: 1 })
  expect(report.transfers).toBeLessThanOrEqual(TRANSFERS)
  expect(failures).toEqual([])
  expect(unproven).toBe(tree.unproven.length)
  expect(report.unknown.size).toBe(0)
  expect(storedRows(dataDir)).toEqual(await imported())
})

/** Crawls again and again, each time ended by something else, until it came to the end. */
async function crawlInParts(
  { crawl }: FollowWorld,
  partOf: (nth: number) => FollowOptions,
): Promise<{ dataDir: string; parts: Crawled[] }> {
  const dataDir = await folder()
  const parts: Crawled[] = []
  do parts.push(await crawl(dataDir, partOf(parts.length)))
  while (parts.at(-1)?.wasStopped)
  return { dataDir, parts }
}

test('what is there is not fetched again, and nothing is asked twice', async () => {
  const { tree, service, crawl } = await world()
  const dataDir = await folder()
  await crawl(dataDir)
  const before = service.asked.length
  await crawl(dataDir)
  const asked = service.asked.slice(before)
  // What spends a dead node is not stored.
  const { txid } = tree.others.dead as FakeTransaction
  expect(asked.filter((path) => path.includes('/get/'))).toEqual([`/v1/transaction/get/${txid}/bin`])
  // Each coin once, and each of the unproven for its proof.
  expect(new Set(asked).size).toBe(asked.length)
  const proofs = [...tree.unproven, { txid }].map((each) => `/v1/transaction/proof/${each.txid}/bin`)
  expect(asked.filter((path) => path.includes('/proof/')).sort()).toEqual(proofs.sort())
})

test('one that is stopped at any question goes on, and ends with the same', async () => {
  const all = await world()
  const { dataDir, parts } = await crawlInParts(all, (nth) => ({
    prepare({ stop }) {
      let left = [1, 4, 11, 29][nth] ?? Number.POSITIVE_INFINITY
      all.service.onQuestion = () => {
        if (--left === 0) void stop()
      }
    },
  }))
  expect(parts.length).toBeGreaterThan(3)
  expect(storedRows(dataDir)).toEqual(await all.imported())
})

test('without names it follows nodes alone, and continues with names when asked to', async () => {
  const { crawl, imported } = await world()
  const dataDir = await folder()
  const first = await crawl(dataDir, { ordinals: 'none' })
  expect(first.report).toMatchObject({ mints: MINTS, transfers: 0, lost: 0 })
  const second = await crawl(dataDir)
  expect(second.report).toMatchObject({ mints: 0, transfers: expect.any(Number) })
  expect(second.failures).toEqual([])
  expect(storedRows(dataDir)).toEqual(await imported())
})

test.each([
  ['more transactions', { maxTransactions: 20, maxBytes: 1_000_000 }, 1],
  ['more bytes', { maxTransactions: 1000, maxBytes: 100_000 }, 10_000],
])(
  'a mint in a block is followed if %s place its last output than a submission may have',
  async (_, limits, bytes) => {
    const { tree, service, crawl } = await world()
    const { chain, headers } = tree
    const lockingScript = new Uint8Array(bytes).fill(0x61)
    const coins = Array.from({ length: 30 }, () =>
      chain.spend({ inputs: [], outputs: [{ satoshis: 10, lockingScript }] }),
    )
    const mint = chain.mint('bx', {
      funding: coins.map((transaction) => ({ transaction, vout: 0 })),
      trailing: [
        { satoshis: 290, lockingScript: OPEN_LOCK },
        { satoshis: 1, lockingScript: OPEN_LOCK },
      ],
    })
    const next = chain.mint('bxy', { funding: [] })
    headers.mine([...coins, mint, next])
    service.know(...[...coins, mint, next].map((each) => tree.record(each)))
    const dataDir = await folder()
    expect(await crawl(dataDir, { limits })).toMatchObject({ failures: [] })
    const names = storedRows(dataDir).names?.join() ?? ''
    expect([names.includes(mint.txid), names.includes(next.txid)]).toEqual([true, true])
  },
)

describe('a source that lies', () => {
  /** Says that something spends the node of `a`. */
  const spentBy =
    (spender: (tree: FollowWorld['tree']) => string) =>
    ({ tree, service }: FollowWorld): void =>
      service.say({ txid: tree.mintOf('a').txid, vout: 1 }, spender(tree))
  /** Answers wrongly what is asked of the mint of `ab`. */
  const faulty =
    (route: string, fault: Fault) =>
    ({ tree, service }: FollowWorld): void => {
      service.fault = (path) => (path.includes(`/${route}/${tree.mintOf('ab').txid}`) ? fault : undefined)
    }
  const elsewhere = ({ tree, service }: FollowWorld): void =>
    service.know(recordOf(tree.mintOf('ab'), tree.mintOf('ab').height))

  test.each<[string, string, (all: FollowWorld) => void]>([
    ['names a wrong spender', 'which does not spend it', spentBy((tree) => tree.mintOf('c').txid)],
    ['leads round in a circle', 'which does not spend it', spentBy((tree) => tree.mintOf('a').txid)],
    ['names a spender that it does not know', 'which no source knows', spentBy(() => '12'.repeat(32))],
    ['gives another transaction each time', 'asked for', faulty('get', 'other')],
    ['gives another path each time', 'the merkle path does not contain', faulty('proof', 'other')],
    ['gives more than anybody takes', 'answered more than', faulty('get', 'long')],
    ['shows a block that the chain has not', 'could not be verified', elsewhere],
  ])('and %s is reported, and its other answers are followed', async (_, why, lie) => {
    const all = await world()
    lie(all)
    const dataDir = await folder()
    const { failures } = await all.crawl(dataDir)
    expect(failures).toEqual([expect.stringContaining(why)])
    const names = storedRows(dataDir).names?.join() ?? ''
    expect(names).toContain(all.tree.mintOf('bab').txid)
    expect(names).not.toContain(all.tree.mintOf('ab').txid)
    // And when it tells the truth, the rest comes.
    all.service.fault = () => undefined
    all.service.know(...all.tree.records)
    await all.crawl(dataDir)
    expect(storedRows(dataDir)).toEqual(await all.imported())
  })

  test.each<[string, Fault]>([
    ['never answers', 'never'],
    ['lets nobody in', { kind: 'status', status: 403 }],
  ])('or %s ends the crawl, which goes on later', async (_, fault) => {
    const all = await world()
    all.service.fault = (__, nth) => (nth < 20 ? undefined : fault)
    const dataDir = await folder()
    await expect(all.crawl(dataDir, { timeout: 300 })).rejects.toMatchObject({ code: 'NO_ANSWER' })
    all.service.fault = () => undefined
    await all.crawl(dataDir)
    expect(storedRows(dataDir)).toEqual(await all.imported())
  })

  test('and makes up an endless chain is followed no further than the limit', async () => {
    const all = await world()
    movedOn(all, 40)
    const { crawl } = all
    const { failures } = await crawl(await folder(), {
      limits: { maxTransactions: 20, maxBytes: 1_000_000 },
    })
    expect(failures).toEqual([expect.stringContaining('are more than a submission may have')])
    const few = await crawl(await folder(), { most: 29 })
    expect(few.wasStopped).toBe(true)
    expect(few.report.mints + few.report.transfers).toBeLessThan(30)
  })
})

/** Moves the last of what is in no block on, so many times; gives the txids. */
function movedOn({ tree, service }: FollowWorld, times: number): string[] {
  const moved: string[] = []
  let last = { transaction: tree.others.opener ?? tree.chain.genesis, vout: 0 }
  for (let made = 0; made < times; made++) {
    const next = tree.chain.spend({ inputs: [last], outputs: [{ satoshis: 1, lockingScript: OPEN_LOCK }] })
    service.know(tree.record(next))
    moved.push(next.txid)
    last = { transaction: next, vout: 0 }
  }
  return moved
}

describe('what is in no block', () => {
  test('is followed as far as was said, and further when a block has it', async () => {
    const all = await world()
    movedOn(all, 40)
    const dataDir = await folder()
    const { failures } = await all.crawl(dataDir, { maxUnproven: 12 })
    expect(failures).toEqual([expect.stringMatching(/ is unmined, and 12 others were already followed: /)])
    const again = await all.crawl(dataDir, { maxUnproven: 50 })
    expect(again.failures).toEqual([])
    expect(again.report.transfers).toBe(40 + 3 - 12)
  })

  test('is not fetched back without end: a move with very many unproven ancestors waits for its block', async () => {
    const all = await world()
    const { tree, service, crawl } = all
    let last = { transaction: tree.purse, vout: 19 }
    for (let made = 0; made < 60; made++) {
      const next = tree.chain.spend({
        inputs: [last],
        outputs: [{ satoshis: 5000, lockingScript: OPEN_LOCK }],
      })
      service.know(tree.record(next))
      last = { transaction: next, vout: 0 }
    }
    const inputs = [last, { transaction: tree.mintOf('d'), vout: 2 }]
    const outputs = [5000, 1].map((satoshis) => ({ satoshis, lockingScript: OPEN_LOCK }))
    const moved = tree.chain.spend({ inputs, outputs })
    service.know(tree.record(moved))
    const before = service.asked.length
    const { failures } = await crawl(await folder(), { maxUnproven: 20 })
    expect(failures).toEqual([expect.stringMatching(/ is unmined, and /)])
    expect(service.asked.slice(before).filter((path) => path.includes('/get/')).length).toBeLessThan(120)
    tree.headers.mine([moved])
    service.know(tree.record(moved))
    expect((await crawl(await folder(), { maxUnproven: 20 })).failures).toEqual([])
  })

  test('is fetched once, however much is built on it', async () => {
    const all = await world()
    const moved = movedOn(all, 40)
    await all.crawl(await folder())
    const asked = all.service.asked.filter((path) => moved.some((txid) => path.includes(`/get/${txid}`)))
    expect(asked).toHaveLength(moved.length)
  })
})

test('transactions that are too large to be held side by side are followed one after another', async () => {
  const { tree, service, crawl } = await world()
  const { chain } = tree
  const stuffing = { satoshis: 0, lockingScript: new Uint8Array(17 * 1024 * 1024).fill(0x6a) }
  const large = ['bab', 'd'].map((name) => {
    const inputs = [{ transaction: tree.mintOf(name), vout: 2 }]
    return chain.spend({ inputs, outputs: [{ satoshis: 1, lockingScript: OPEN_LOCK }, stuffing] })
  })
  tree.headers.mine(large)
  service.know(...large.map((each) => tree.record(each)))
  const limits = { maxTransactions: 1000, maxBytes: 40_000_000 }
  const { report, failures } = await crawl(await folder(), { limits })
  expect(report.transfers).toBeGreaterThan(2)
  expect(failures).toEqual([])
  // To learn that it is large, and once more when it has its turn.
  for (const { txid } of large)
    expect(service.asked.filter((path) => path.startsWith(`/v1/transaction/get/${txid}`))).toHaveLength(2)
})

test('a genesis that the source does not know ends it', async () => {
  const { tree, service, crawl } = await world()
  service.forget(tree.chain.genesis.txid)
  await expect(crawl(await folder())).rejects.toMatchObject({
    code: 'NOT_KNOWN',
    message: `the source does not know the genesis ${formatOutpoint(tree.chain.deployment.genesis)}`,
  })
})

test('a mint is admitted, and a parent that the source does not know is reported', async () => {
  const { tree, service, crawl } = await world()
  const { purse } = tree
  service.forget(purse.txid)
  const { report, failures } = await crawl(await folder(), { ordinals: 'none' })
  expect([...report.unknown]).toEqual([purse.txid])
  // The one in no block cannot be verified without it.
  expect(failures).toEqual([expect.stringContaining(`the BEEF does not contain ${purse.txid}`)])
  expect(report.mints).toBe(MINTS - 1)
})
