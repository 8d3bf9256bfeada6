import { readBeef } from '../../../backend/src/graph/read-beef.js'
import { encodeBeef } from '../../../backend/src/graph/write-beef.js'
import { hostedIndex } from '../../../backend/src/host/hosted-index.js'
import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { hostRules } from '../../../backend/src/read/host-index.js'
import { attachGateway } from '../../../src/gateway/index.js'
import { EngineCatchUp } from '../../../src/plugin/engine-catch-up.js'
import {
  attachFollower,
  type FollowerOptions,
  type HostFollower,
  storesOf,
} from '../../../src/plugin/index.js'
import type { CrawledTree } from '../../support/follow/crawled-tree.js'
import { type FollowWorld, useFollowWorlds } from '../../support/follow/follow-world.js'
import type { EngineVersion } from '../../support/plugin/engines.js'
import { type PluginHost, startPluginHost } from '../../support/plugin/plugin-host.js'
import type { FakeTransaction } from '../../support/protocol/fake-chain.js'
import { startHeaderService } from '../../support/server/header-service.js'
import { ask, posted, SILENT } from '../../support/server/test-server.js'
import { until } from '../../support/server/waiting.js'
import { openSqlite } from '../../support/storage/sqlite-database.js'

// What follows the chain in a host of an engine, of which 0.4.6 is the real one. Several processes:
// test/system/plugin/followed-hosts.test.ts.

const worlds = useFollowWorlds()

const QUICK = { CHAIN_SOURCE_RATE: '10000', FOLLOW_POLL_MS: '100', HEADERS_POLL_MS: '100' }

type Tracker = Pick<FollowerOptions, 'settings' | 'chainTracker'>

/** What says in a host which blocks the chain has. */
const TRACKERS: Record<'tracker' | 'headers', (world: FollowWorld) => Promise<Tracker>> = {
  tracker: async ({ tree: { headers } }) => ({
    chainTracker: {
      isValidRootForHeight: async (root, height) => headers.rootAt(height) === root,
      currentHeight: async () => headers.bestTip.height,
    },
  }),
  headers: async ({ tree: { headers } }) => {
    const { url } = await startHeaderService(headers)
    const first = [...headers.branch.blocks()].at(-1)?.header
    return {
      settings: {
        HEADERS_SOURCES: `junglebus=${url}`,
        HEADERS_CHECKPOINT: `${first?.height}:${first?.hash}`,
      },
    }
  },
}

interface Started {
  host: PluginHost
  follower: HostFollower
  stop(): Promise<void>
}

async function start(
  { tree, url }: FollowWorld,
  {
    folder,
    settings,
    chainTracker,
    version = '0.4.6',
    submit,
  }: Tracker & {
    folder: string
    version?: EngineVersion
    /** What the engine does instead of taking what it is passed. */
    submit?: () => Promise<never>
  },
): Promise<Started> {
  let follower: HostFollower | undefined
  const { deployment } = tree.chain
  const host = await startPluginHost({
    ...{ deployment, engine: version },
    database: { name: 'host', KNEX_URL: `sqlite:${folder}`, MONGO_URL: '' },
    attach({ app, engine, knex }) {
      follower = attachFollower(knex, {
        settings: { CHAIN_SOURCES: `junglebus=${url}`, ...QUICK, ...settings },
        engine: submit === undefined ? engine : { managers: engine?.managers ?? {}, submit },
        ...{ chainTracker, logger: SILENT },
      })
      attachGateway(app, storesOf(knex), { deployment, follower, logger: SILENT })
    },
  })
  if (follower === undefined) throw new Error('it is attached')
  host.writes.release()
  let stopped: Promise<void> | undefined
  const stop = async (): Promise<void> => {
    stopped ??= Promise.resolve(follower?.stop()).then(() => host.stop())
    await stopped
  }
  onTestFinished(stop)
  return { host, follower, stop }
}

const hasCaughtUp = ({ follower }: Started, { headers }: CrawledTree) =>
  until(() => follower.progress.asOf?.height === headers.bestTip.height, 'the host has caught up')

/** What the engine answers itself, in whose place the gateway answers `/lookup`. */
async function foundBy({ host }: Started, query: object): Promise<string[]> {
  const answer = await host.host.engine?.lookup({ service: 'ls_names', query })
  const { outputs } = answer as { outputs: { beef: number[]; outputIndex: number }[] }
  return outputs.map(({ beef, outputIndex: vout }) =>
    formatOutpoint({ txid: readBeef(beef).subject.txid, vout }),
  )
}

/** Where a name was mined, and where it is. */
const placesOf = async (started: Started, name: string) => [
  ...(await foundBy(started, { origin: name })),
  ...(await foundBy(started, { name })),
]

const outputOf = ({ txid }: FakeTransaction, vout: number): string => formatOutpoint({ txid, vout })

describe.each([
  ['0.4.6', 'the tracker of the host', TRACKERS.tracker],
  ['2.0.2', 'headers of its own', TRACKERS.headers],
] as const)('an engine %s, by %s', (version, _, trackerOf) => {
  test('a new host gets all names that exist, and its engine answers with them', async () => {
    const world = await worlds.world()
    const { tree } = world
    const folder = await worlds.folder()
    const started = await start(world, { folder, version, ...(await trackerOf(world)) })
    const page = (name: string) => ask(started.host.host.url, `/svc/names/${name}`)
    // There may be such a name.
    expect(await page('zz')).toMatchObject({ status: 503, json: { code: 'NOT_CAUGHT_UP' } })
    await until(() => !started.follower.progress.isCatchingUp, 'the host has caught up')
    for (const name of ['ab', 'b', 'baa', 'bab', 'd']) {
      const origin = outputOf(tree.mintOf(name), 2)
      await until(async () => (await placesOf(started, name)).length === 2, `the engine has ${name}`)
      expect(await placesOf(started, name)).toEqual([origin, origin])
    }
    const { pair, pairs, paired, a1 } = tree.others as Record<string, FakeTransaction>
    if (!(pair && pairs && paired && a1)) throw new Error('names have moved')
    await until(async () => (await placesOf(started, 'abc')).length === 2, 'the engine has the tip')
    expect(await placesOf(started, 'a')).toEqual([outputOf(tree.mintOf('a'), 2), outputOf(pair, 0)])
    expect(await placesOf(started, 'abc')).toEqual([outputOf(tree.mintOf('abc'), 2), outputOf(paired, 0)])
    expect(await placesOf(started, 'c')).toEqual([outputOf(tree.mintOf('c'), 2), outputOf(pairs, 0)])
    // It is in no block yet.
    const [unproven] = tree.unproven.slice(-1) as [FakeTransaction]
    await until(async () => (await placesOf(started, 'oo')).length === 2, 'the engine has what is unproven')
    expect((await placesOf(started, 'oo'))[0]).toBe(outputOf(unproven, 2))
    // What was between is there, too, as the engine has each output that a topic holds.
    const outpoint = outputOf(a1, 0)
    expect(await foundBy(started, { outpoint })).toEqual([outpoint])
    expect(started.follower.status()).toMatchObject({
      state: 'following',
      height: tree.headers.bestTip.height,
      follow: { state: 'keeping up', failures: 0 },
      sources: [{ state: 'ok' }],
    })
    const asOf = { height: tree.headers.bestTip.height }
    expect(await page('zz')).toMatchObject({ status: 404, json: { asOf } })
    expect(await page('ab')).toMatchObject({ status: 200, json: { asOf } })
  })

  test('a host that starts again goes on where it was, and sees what was reorganised', async () => {
    const world = await worlds.world()
    const { tree, service } = world
    const { headers } = tree
    const [openMint] = tree.unproven.slice(-1) as [FakeTransaction]
    const folder = await worlds.folder()
    const tracker = await trackerOf(world)
    const passed: number[] = []
    const submit = async (): Promise<never> => {
      passed.push(1)
      throw new Error('the engine cannot')
    }
    const first = await start(world, { folder, version, ...tracker, submit })
    await until(() => !first.follower.progress.isCatchingUp && passed.length > 0, 'the host has caught up')
    // The gateway answers what the engine cannot.
    const outpoint = outputOf(tree.mintOf('a'), 2)
    const question = posted({ service: 'ls_ordinals', query: { outpoint } })
    const { json } = await ask(first.host.host.url, '/lookup', question)
    expect(json).toMatchObject({ outputs: [{ outputIndex: 2 }] })
    await first.stop()
    // What is stored is not fetched again.
    const stored = ['a', 'ab', 'abc', 'b', 'c', 'd'].map((name) => tree.mintOf(name).txid)
    const fetched = (): string[] =>
      service.asked.filter((path) => path.includes('/get/') && stored.some((txid) => path.includes(txid)))
    const before = fetched()
    expect(new Set(before).size).toBe(stored.length)
    const fork = headers.fork(headers.bestTip.height)
    headers.mine([openMint])
    service.know(tree.record(openMint))
    const again = await start(world, { folder, version, ...tracker })
    await hasCaughtUp(again, tree)
    await until(async () => (await placesOf(again, 'oo')).length === 2, 'the engine has the mint')
    expect((await placesOf(again, 'oo'))[0]).toBe(outputOf(openMint, 2))
    // The engine, which took nothing before, has all.
    await until(async () => (await placesOf(again, 'ab')).length === 2, 'the engine has caught up')
    // The chain has another mint in its place.
    for (const each of [[tree.rival], []]) fork.mine(each)
    headers.reorg(fork)
    service.forget(openMint.txid)
    service.know(tree.record(tree.rival))
    await hasCaughtUp(again, tree)
    const competing = outputOf(tree.rival, 2)
    await until(
      async () => (await placesOf(again, 'oo')).includes(competing),
      'the engine has the other mint',
    )
    expect(await placesOf(again, 'oo')).toEqual([competing, competing])
    expect(fetched()).toEqual(before)
  })
})

test('what an engine was passed is compared again only if it has lost that, or other things count', async () => {
  const world = await worlds.world()
  const started = await start(world, { folder: await worlds.folder(), ...(await TRACKERS.tracker(world)) })
  await until(() => !started.follower.progress.isCatchingUp, 'the host has caught up')
  const { graph } = storesOf(started.host.host.knex)
  expect(hostRules(graph).chainTracker).toBeDefined()
  await started.follower.stop()
  expect(hostRules(graph).chainTracker).toBeUndefined()
  const [known, passed, compared] = [new Set<string>(), [] as string[], [] as string[]]
  /** Until nothing more is passed to an engine that has what is known. */
  const catchUp = async (): Promise<void> => {
    let looks = 0
    passed.length = 0
    compared.length = 0
    const engine = new EngineCatchUp({
      graph,
      engine: {
        managers: { tm_names: {}, tm_ordinals: {} },
        async submit({ beef }) {
          looks = 0
          const { txid } = readBeef(beef).subject
          passed.push(txid)
          known.add(txid)
        },
      },
      tables: async () => ({
        async applied(txids) {
          looks = 0
          compared.push(...txids)
          return new Set(txids.filter((each) => known.has(each)))
        },
      }),
      isMine: () => ++looks > 0,
      onFailure(error) {
        throw error
      },
    })
    engine.start()
    // A round looks before it begins, and at each topic.
    await until(() => looks > 3, 'it has looked again, and compared nothing')
    await engine.stop()
  }
  await catchUp()
  const all = passed.length
  expect(all).toBeGreaterThan(10)
  await catchUp()
  // The last of each topic.
  expect([passed, compared.length]).toEqual([[], 2])
  // What was blocked, or did not count, as it was passed by is looked for once it may be passed.
  const block = { kind: 'name', value: 'zz' } as const
  await graph.blocklist.add({ ...block, reason: 'a test', since: 1 })
  await graph.blocklist.remove(block)
  await catchUp()
  expect(passed).toEqual([])
  expect(compared.length).toBeGreaterThan(all)
  await catchUp()
  expect(compared).toHaveLength(2)
  known.clear()
  await catchUp()
  expect(passed).toHaveLength(all)
})

test('a host that ran without one gets all names once it has one, also while it runs', async () => {
  const world = await worlds.world()
  const { tree, url } = world
  const { deployment } = tree.chain
  const folder = await worlds.folder()
  const host = await startPluginHost({
    ...{ deployment, engine: '0.4.6' as const },
    database: { name: 'host', KNEX_URL: `sqlite:${folder}`, MONGO_URL: '' },
  })
  onTestFinished(() => host.stop())
  host.writes.release()
  for (const each of [tree.chain.genesis, tree.mintOf('a')])
    await host.submit(encodeBeef([tree.record(tree.purse), tree.record(each)]))
  await until(async () => (await host.found('ls_names', { origin: 'a' })).length === 1, 'it has a name')
  const { settings } = await TRACKERS.headers(world)
  const { engine, knex } = host.host
  const sources = { CHAIN_SOURCES: `junglebus=${url}`, ...QUICK, ...settings }
  const follower = attachFollower(knex, { settings: sources, engine, logger: SILENT })
  onTestFinished(() => follower.stop())
  const started = { host, follower, stop: () => follower.stop() }
  await hasCaughtUp(started, tree)
  await until(async () => (await placesOf(started, 'bab')).length === 2, 'the engine has all')
  expect((await placesOf(started, 'a'))[0]).toBe(outputOf(tree.mintOf('a'), 2))
})

test('what keeps it from following is one line that says what to do', async () => {
  const { writer, close } = await openSqlite(await worlds.folder())
  onTestFinished(close)
  onTestFinished(() => hostedIndex(writer).close())
  expect(() => attachFollower(undefined)).toThrow('call configureKnex or configureMongo of the host first')
  expect(() => attachFollower(writer)).toThrow('configure ls_names over this database first')
  const { host } = await start(await worlds.world(), { folder: await worlds.folder() })
  const wrong = (settings: Tracker['settings']) => () => attachFollower(host.host.knex, { settings })
  expect(wrong({ CHAIN_SOURCES: 'none' })).toThrow(
    'CHAIN_SOURCES: must name the services to follow the chain by, such as junglebus',
  )
  expect(wrong({ FOLLOW_POLL_MS: 'soon' })).toThrow('FOLLOW_POLL_MS: must be')
})

test.each([
  ['has followed to the end', {}, 404],
  ['has not caught up', { CHAIN_SOURCES: 'junglebus=http://127.0.0.1:9' }, 503],
])(
  'where proofs count by something else already, it says so and answers as one that %s',
  async (_, settings, status) => {
    const world = await worlds.world()
    const folder = await worlds.folder()
    const first = await start(world, { folder, settings, ...(await TRACKERS.tracker(world)) })
    await until(() => first.follower.status().state === 'following', 'it follows')
    if (status === 404) await hasCaughtUp(first, world.tree)
    await first.stop()
    const second = await start(world, { folder, chainTracker: 'scripts only' })
    await until(() => second.follower.status().state === 'failed', 'it cannot follow')
    expect(second.follower.status().reason).toBe(
      'CHAIN_TRACKER: proofs of this database count by "tracker", not "scripts-only": minetree setting tracker scripts-only replaces that',
    )
    if (status === 404) await hasCaughtUp(second, world.tree)
    expect((await ask(second.host.host.url, '/svc/names/zz')).status).toBe(status)
  },
)
