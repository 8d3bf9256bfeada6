import { ChainTrackerError } from '../../../../backend/src/graph/errors.js'
import type { ChainTip } from '../../../../src/chain/sources/chain-source.js'
import type { BlockHeaders, ProofVerifier } from '../../../../src/chain/tracker/chain-tracker.js'
import { ReorgMonitor, type ReorgMonitorOptions } from '../../../../src/chain/tracker/reorg-monitor.js'
import { type FakeTransaction, p2pkh } from '../../../support/protocol/fake-chain.js'
import { type HeaderWorld, IMPATIENT, useHeaderWorlds } from '../../../support/server/header-world.js'
import { SILENT } from '../../../support/server/test-server.js'
import { until } from '../../../support/server/waiting.js'

// A chain that forks, and what becomes of the proofs that lead to blocks of the branch it left (docs/spec/overlay.md).

const worlds = useHeaderWorlds()

/** A name that was mined in a block, and another mint of it from the same node, which nobody has seen. */
async function withCompetingMint(
  world: HeaderWorld,
): Promise<{ first: FakeTransaction; competing: FakeTransaction }> {
  const { chain } = world
  const root = chain.node('')
  const first = chain.mint('a')
  const competing = chain.mint('a', { from: root, ownerLock: p2pkh(9) })
  await world.mined(first)
  await world.tell()
  return { first, competing }
}

/** Lets the chain go on without its last blocks, in a longer branch that holds these in its first. */
function reorg({ headers }: HeaderWorld, blocks: number, transactions: FakeTransaction[] = []): void {
  const branch = headers.fork(headers.bestTip.height - blocks)
  branch.mine(transactions)
  while (branch.tip.height <= headers.bestTip.height) branch.mine()
  headers.reorg(branch)
}

async function isUnproven(world: HeaderWorld, name: string): Promise<boolean> {
  const { status, json } = await world.name(name)
  return status === 200 && !('height' in (json as object))
}

test('nobody has to tell: the tracker is asked now and then', async () => {
  const world = await worlds.start({ HEADERS_POLL_MS: '20' })
  await withCompetingMint(world)
  reorg(world, 1)
  await until(() => isUnproven(world, 'a'))
})

test('a reorg while the node was down is found at start, however long that was', async () => {
  const world = await worlds.start()
  await withCompetingMint(world)
  expect((await world.tell()).status).toBe(200)
  await world.server.stop()
  reorg(world, 1)
  world.headers.grow(60)
  const again = await world.restart()
  await until(() => isUnproven(again, 'a'))
})

test('only blocks that a reorg may reach are asked about', async () => {
  const world = await worlds.start({ REORG_DEPTH: '3' })
  const { chain, headers, tracker } = world
  for (const name of ['a', 'b', 'c', 'd', 'e']) await world.mined(chain.mint(name))
  await world.tell()
  const heights = (): number[] =>
    tracker.asked.filter((question) => question !== 'tip').map((question) => Number(question.split(' ')[0]))
  const { height } = headers.bestTip
  tracker.asked.length = 0
  expect((await world.tell()).json).toEqual({ tip: height, from: height - 2, blocks: 3, disproved: 0 })
  expect(heights()).toEqual([height, height - 1, height - 2])
  tracker.asked.length = 0
  expect((await world.tell(height - 4)).json).toEqual({
    tip: height,
    from: height - 4,
    blocks: 5,
    disproved: 0,
  })
  expect(heights()).toEqual([0, 1, 2, 3, 4].map((below) => height - below))
})

test('behind a block that is refused, as many more are asked about', async () => {
  const world = await worlds.start({ REORG_DEPTH: '2' })
  const { chain, headers } = world
  for (const name of ['a', 'b', 'c', 'd', 'e']) await world.mined(chain.mint(name))
  await world.tell()
  const { height } = headers.bestTip
  // The branch leaves behind the mint of b; a name of each of the three blocks after that has a proof that leads nowhere.
  reorg(world, 3)
  expect((await world.tell()).json).toEqual({ tip: height + 1, from: height - 4, blocks: 5, disproved: 3 })
  for (const name of ['a', 'b']) expect(await isUnproven(world, name)).toBe(false)
  for (const name of ['c', 'd', 'e']) expect(await isUnproven(world, name)).toBe(true)
})

describe('a tracker takes nothing away', () => {
  test('that fails', async () => {
    const world = await worlds.start(IMPATIENT)
    await withCompetingMint(world)
    reorg(world, 1)
    const before = world.server.rows()
    world.tracker.mood = 'fails'
    const { status, json } = await world.tell()
    expect({ status, json }).toMatchObject({ status: 503, json: { code: 'NOT_READY' } })
    expect(world.server.rows()).toEqual(before)
    world.tracker.mood = 'answers'
    expect((await world.tell()).json).toMatchObject({ disproved: 1 })
  })

  test('that stops answering in the middle of a round, except what it reported until then', async () => {
    const world = await worlds.start(IMPATIENT)
    const { chain, headers, tracker } = world
    for (const name of ['a', 'b']) await world.mined(chain.mint(name))
    const { height } = headers.bestTip
    reorg(world, 2)
    tracker.onQuestion = (question) => {
      if (question.startsWith(`${height - 1} `)) tracker.mood = 'says nothing'
    }
    expect((await world.tell()).status).toBe(503)
    expect([await isUnproven(world, 'a'), await isUnproven(world, 'b')]).toEqual([false, true])
    // However far the chain goes on: what was left open is not forgotten.
    tracker.onQuestion = undefined
    tracker.mood = 'answers'
    headers.grow(40)
    expect((await world.tell()).json).toMatchObject({ disproved: 1 })
    expect(await isUnproven(world, 'a')).toBe(true)
  })

  test('that has not come so far yet', async () => {
    const world = await worlds.start()
    await withCompetingMint(world)
    world.headers.grow(5)
    const { height } = world.headers.bestTip
    await world.tell()
    reorg(world, 6)
    world.tracker.syncedTo = height - 6
    expect((await world.tell()).json).toEqual({ tip: height - 6, from: height - 15, blocks: 1, disproved: 0 })
    expect(await isUnproven(world, 'a')).toBe(false)
    world.tracker.syncedTo = Number.POSITIVE_INFINITY
    expect((await world.tell()).json).toMatchObject({ disproved: 1 })
  })

  test('that lies far below where it was', async () => {
    const world = await worlds.start()
    await withCompetingMint(world)
    world.headers.grow(30)
    await world.tell()
    const before = world.server.rows()
    world.tracker.syncedTo = 800_000
    const { status, json } = await world.tell()
    expect({ status, json }).toMatchObject({
      status: 503,
      json: { code: 'NOT_READY', error: expect.stringContaining('is too far behind') },
    })
    expect(world.server.rows()).toEqual(before)
  })

  test('that says no and thinks better of it', async () => {
    const world = await worlds.start()
    const { headers, tracker } = world
    await withCompetingMint(world)
    const first = headers.branch
    const { height } = headers.bestTip
    reorg(world, 1)
    tracker.onQuestion = (question) => {
      if (!question.startsWith(`${height} `)) return
      tracker.onQuestion = undefined
      while (first.tip.height <= headers.bestTip.height) first.mine()
      headers.reorg(first)
    }
    expect((await world.tell()).json).toMatchObject({ disproved: 0 })
    expect(await isUnproven(world, 'a')).toBe(false)
  })
})

test('a server that ends waits for no tracker', async () => {
  const world = await worlds.start({ CHAIN_TRACKER_TIMEOUT_MS: '600000' })
  world.tracker.mood = 'says nothing'
  const answer = world.tell()
  await until(async () => world.tracker.asked.at(-1) === 'tip')
  await world.server.stop()
  expect((await answer).status).toBe(503)
})

/** A monitor of a chain of 1,000 blocks; by default, no proof is stored. */
function monitorOf({
  headers,
  settings = new Map<string, string>(),
  ...options
}: { headers: object; settings?: Map<string, string> } & Partial<Pick<ReorgMonitorOptions, 'runLocked'>> & {
    proofs?: object
    storedAt?: number
  }) {
  const { storedAt, proofs = {}, runLocked = (work) => work() } = options
  const listeners: ((tip: ChainTip) => void)[] = []
  /** From which heights rounds have read. */
  const heights: number[] = []
  const from = (block: { from: number }): object[] => {
    heights.push(block.from)
    return storedAt === undefined ? [] : [{ height: storedAt, root: 'ab'.repeat(32) }]
  }
  const onTip = (listener: (tip: ChainTip) => void): void => void listeners.push(listener)
  const monitor = new ReorgMonitor({
    headers: { onTip, ...headers } as unknown as BlockHeaders,
    proofs: proofs as ProofVerifier,
    graph: { blocks: { from }, settings } as unknown as ReorgMonitorOptions['graph'],
    ...{ reorgDepth: 10, pollInterval: 0, logger: SILENT, runLocked },
  })
  const fork = (forkedAt: number): void => {
    for (const listener of listeners) listener({ height: 1000, forkedAt })
  }
  return { monitor, fork, heights }
}

test('a proof is taken back under the write lock, where the tracker is asked once more', async () => {
  let isLocked = false
  const said: string[] = []
  const { monitor } = monitorOf({
    headers: {
      currentHeight: async () => 1000,
      async verdict() {
        said.push(`asked ${isLocked}`)
        return 'no'
      },
    },
    proofs: {
      async disprove() {
        said.push(`disproved ${isLocked}`)
        return 1
      },
    },
    storedAt: 995,
    async runLocked(work) {
      isLocked = true
      const done = await work()
      isLocked = false
      return done
    },
  })
  expect(await monitor.round()).toMatchObject({ disproved: 1 })
  expect(said).toEqual(['asked false', 'asked true', 'disproved true'])
})

test('reorganisations that are reported during a round share the next one, from the lowest height on', async () => {
  let asked = 0
  let answer = (_: number): void => {}
  const currentHeight = () => {
    asked++
    return new Promise<number>((resolve) => {
      answer = resolve
    })
  }
  const { monitor, fork, heights } = monitorOf({ headers: { currentHeight } })
  monitor.start()
  await until(() => asked === 1)
  for (let forkedAt = 1000; forkedAt >= 500; forkedAt--) fork(forkedAt)
  answer(1000)
  await until(() => asked === 2)
  answer(1000)
  await until(() => heights.length === 2)
  expect(heights).toEqual([991, 500])
  await monitor.stop()
  expect(asked).toBe(2)
})

test('a deep reorganisation whose round fails is covered by the next one, also after a restart', async () => {
  const settings = new Map<string, string>()
  const open = (answers: boolean[]) => {
    let asked = 0
    const currentHeight = async () => {
      if (answers[asked++] === true) return 1000
      throw new ChainTrackerError('it does not answer')
    }
    const opened = monitorOf({ headers: { currentHeight }, settings })
    opened.monitor.start()
    return { ...opened, asked: () => asked }
  }
  const first = open([true, false])
  await until(() => first.heights.length === 1)
  first.fork(500)
  await until(() => first.asked() === 2)
  await first.monitor.stop()
  const later: number[] = []
  for (let starts = 0; starts < 2; starts++) {
    const { monitor, heights } = open([true])
    await until(() => heights.length === 1)
    await monitor.stop()
    later.push(...heights)
  }
  expect([...first.heights, ...later]).toEqual([991, 500, 991])
})
