import { StoreUnavailableError } from '../../../../backend/src/graph/errors.js'
import { utf8 } from '../../../../backend/src/protocol/bytes.js'
import { formatOutpoint } from '../../../../backend/src/protocol/outpoint.js'
import type { Follower, FollowerOptions } from '../../../../src/chain/follow/follower.js'
import type { Node } from '../../../../src/server/node.js'
import { admitBeef } from '../../../../src/server/writer/admit.js'
import {
  type FollowWorld,
  type StartedFollower,
  useFollowWorlds,
} from '../../../support/follow/follow-world.js'
import { type FakeTransaction, inscriptionScript, OPEN_LOCK } from '../../../support/protocol/fake-chain.js'
import { until } from '../../../support/server/waiting.js'

// A follower that runs beside a node, while the chain grows and forks.

const { world, folder } = useFollowWorlds()
/** So long that nothing comes of polling in a test. */
const NEVER = 3_600_000
const ONE_SAT = { satoshis: 1, lockingScript: OPEN_LOCK }

interface Running extends Omit<FollowWorld, 'follower'> {
  node: Node
  follower: Follower
  rested: StartedFollower['rested']
  /** Puts transactions into a block that the source knows, and says that there is one. */
  block(...transactions: FakeTransaction[]): void
}

async function running(options: Partial<FollowerOptions> = {}, dataDir?: string): Promise<Running> {
  const all = await world()
  return await runningIn(all, dataDir ?? (await folder()), options)
}

async function runningIn(
  all: FollowWorld,
  dataDir: string,
  options: Partial<FollowerOptions> = {},
): Promise<Running> {
  const node = await all.open(dataDir)
  const { follower, stop, rested } = all.follower(node, { pollInterval: NEVER, ...options })
  onTestFinished(node.close)
  onTestFinished(stop)
  follower.start()
  await until(() => follower.status().state === 'keeping up', 'the first sweep ends')
  const { tree, service } = all
  const block = (...transactions: FakeTransaction[]): void => {
    const { header } = tree.headers.mine(transactions)
    service.know(...tree.records, ...transactions.map((each) => tree.record(each)))
    follower.onBlock(header)
  }
  return { ...all, node, follower, rested, block }
}

const originOf = async ({ node }: Running, name: string): Promise<string | undefined> =>
  (await node.graph.names.originOf(name))?.txid

test('a block costs one request for each coin and each unproven transaction, and a dead node costs none', async () => {
  const all = await running()
  const { tree, node, follower, service } = all
  const before = service.asked.length
  all.block()
  const { height } = tree.headers.bestTip
  await until(() => follower.status().height === height, 'all is asked about')
  const asked = service.asked.slice(before)
  expect(new Set(asked).size).toBe(asked.length)
  expect(asked.filter((path) => path.includes('/get/'))).toEqual([])
  expect(asked.filter((path) => path.includes('/proof/'))).toHaveLength(tree.unproven.length)
  const dead = await node.graph.names.liveNode('abc')
  const spends = asked.filter((path) => path.includes('/spend/')).map((path) => path.split('/').at(-1))
  expect(spends).not.toContain(dead && formatOutpoint(dead))
  // 11 names and the root, but for the dead node and the burnt name; and of the unproven, what else may spend their coins.
  expect(spends).toHaveLength(11 + 10 + 2)
})

test('a node that something else than a mint spends may be minted from after a fork', async () => {
  const all = await running()
  const { tree, service, follower } = all
  service.forget(tree.others.dead?.txid ?? '')
  const mint = tree.chain.mint('abcx', { funding: [{ transaction: tree.purse, vout: 19 }] })
  const { header } = tree.headers.mine([mint])
  service.know(tree.record(mint))
  follower.onBlock({ height: header.height, forkedAt: header.height })
  await until(() => originOf(all, 'abcx'), 'the mint is admitted')
})

test('a mint that the source has before the node knows its block is admitted with that block', async () => {
  const all = await running()
  const { tree, service, follower } = all
  const { headers, chain } = tree
  const mint = chain.mint('w', { funding: [{ transaction: tree.purse, vout: 19 }] })
  const ahead = headers.fork(headers.bestTip.height)
  ahead.mine([mint])
  const proof = ahead.proof(mint.txid)
  service.know({ ...tree.record(mint), ...(proof && { proof }) })
  follower.onBlock(headers.bestTip)
  await until(() => follower.status().lastError, 'the mint cannot be verified')
  expect(await originOf(all, 'w')).toBeUndefined()
  headers.reorg(ahead)
  follower.onBlock(headers.bestTip)
  await until(() => originOf(all, 'w'), 'it is admitted')
})

test('blocks that come faster than it can ask keep it from no coin', async () => {
  const all = await running()
  const { tree, service, follower } = all
  service.onQuestion = () => follower.onBlock(tree.headers.bestTip)
  const names = ['bax', 'cx', 'ax']
  const mints = names.map((name) => tree.chain.mint(name))
  all.block(...mints)
  for (const name of names) await until(() => originOf(all, name), `${name} is admitted`)
  const { height } = tree.headers.mine([]).header
  await until(() => follower.status().height === height, 'sweeps come to an end')
})

test('it has not caught up with a source that does not know the coins it is asked about', async () => {
  const all = await world()
  all.service.fault = (path) => (path.includes('/spend/') ? { kind: 'status', status: 404 } : undefined)
  const node = await all.open(await folder())
  const { follower, stop } = all.follower(node, { pollInterval: 50 })
  onTestFinished(node.close)
  onTestFinished(stop)
  follower.start()
  await until(() => follower.status().failures > 1, 'a further sweep asks again')
  expect(follower.status().state).toBe('catching up')
  all.service.fault = () => undefined
  await until(() => follower.status().state === 'keeping up', 'the source knows them')
})

test('it catches up until a whole sweep has found its node able to answer', async () => {
  const all = await world()
  const node = await all.open(await folder())
  const { genesis } = all.tree.chain.deployment
  let isOut = true
  let refused = 0
  const { follower, stop } = all.follower(node, {
    pollInterval: 50,
    node: {
      genesis,
      store: node.graph,
      async admit({ txid, beef }) {
        if (isOut && txid !== genesis.txid) {
          refused++
          throw new StoreUnavailableError('in a test')
        }
        return await admitBeef(node, { txid, beef: () => beef })
      },
    },
  })
  onTestFinished(node.close)
  onTestFinished(stop)
  follower.start()
  await until(() => follower.status().lastError, 'its node is out')
  const before = refused
  await until(() => refused > before, 'it tries again')
  expect(follower.status()).toMatchObject({ state: 'catching up', mints: 0 })
  isOut = false
  await until(() => follower.status().state === 'keeping up', 'a sweep ends')
  expect(follower.status()).toMatchObject({ mints: 11 })
})

test('what a source names as a spender before it has it is admitted without another block', async () => {
  const all = await running()
  const { tree, service, follower } = all
  const { outpoint } = tree.chain.node('')
  const mint = tree.chain.mint('w')
  const { header } = tree.headers.mine([mint])
  service.say(outpoint, mint.txid)
  follower.onBlock(header)
  await until(() => follower.status().failures, 'the source does not know it')
  service.know(tree.record(mint))
  await until(() => originOf(all, 'w'), 'it is admitted')
})

describe('a feed', () => {
  test('brings what spends a coin that is followed, at once, and nothing else', async () => {
    const all = await running()
    const { tree, node, follower, service } = all
    const mint = tree.chain.mint('v')
    const other = tree.chain.spend({
      inputs: [],
      outputs: [
        { satoshis: 1, lockingScript: inscriptionScript({ contentType: 'text/plain', body: utf8('x') }) },
      ],
    })
    const child = tree.chain.mint('vv')
    tree.headers.mine([mint, other, child])
    for (const each of [mint, other, child]) service.know(tree.record(each))
    await follower.take(tree.record(other))
    expect(await node.graph.transactions.has(other.txid)).toBe(false)
    await follower.take(tree.record(mint))
    expect(await originOf(all, 'v')).toBe(mint.txid)
    // What follows from it is asked about.
    await until(() => originOf(all, 'vv'), 'its child is admitted')
  })

  test('that shows a mint before the node knows its block is no reason to forget it', async () => {
    const all = await running()
    const { tree, service, follower } = all
    const { headers } = tree
    const mint = tree.chain.mint('v', { funding: [{ transaction: tree.purse, vout: 19 }] })
    const ahead = headers.fork(headers.bestTip.height)
    ahead.mine([mint])
    const proof = ahead.proof(mint.txid)
    const record = { ...tree.record(mint), ...(proof && { proof }) }
    service.know(record)
    await follower.take(record).catch(() => undefined)
    expect(await originOf(all, 'v')).toBeUndefined()
    headers.reorg(ahead)
    await until(() => originOf(all, 'v'), 'it is admitted')
  })

  test('brings any ordinal, and where it goes, if all are followed', async () => {
    const all = await running({ ordinals: 'all' })
    const { tree, node, follower, service } = all
    const script = inscriptionScript({ contentType: 'text/plain', body: utf8('x'), lock: OPEN_LOCK })
    const ordinal = tree.chain.spend({ inputs: [], outputs: [{ satoshis: 1, lockingScript: script }] })
    const moved = tree.chain.spend({ inputs: [{ transaction: ordinal, vout: 0 }], outputs: [ONE_SAT] })
    tree.headers.mine([ordinal])
    service.know(tree.record(ordinal))
    await follower.take(tree.record(ordinal))
    all.block(moved)
    const at = { txid: ordinal.txid, vout: 0 }
    await until(
      async () => (await node.graph.ordinals.currentOutput(at))?.txid === moved.txid,
      'it is where it went',
    )
  })

  test('is told of an outage, so that it brings the transaction again', async () => {
    const all = await running()
    const { tree, follower, service, rested } = all
    const mint = tree.chain.mint('v', { funding: [{ transaction: tree.purse, vout: 19 }] })
    const coin = tree.chain.spend({ inputs: [], outputs: [{ satoshis: 5000, lockingScript: OPEN_LOCK }] })
    const other = tree.chain.mint('x', { funding: [{ transaction: coin, vout: 0 }] })
    tree.headers.mine([mint, coin, other])
    service.fault = () => ({ kind: 'status', status: 500 })
    await follower.take(tree.record(mint))
    await expect(follower.take(tree.record(other))).rejects.toMatchObject({ code: 'NO_ANSWER' })
    service.fault = () => undefined
    service.know(tree.record(coin))
    await rested()
    await follower.take(tree.record(other))
    expect(await originOf(all, 'x')).toBe(other.txid)
  })
})
