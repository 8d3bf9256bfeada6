import { asEngine, openFront } from '../../../support/server/peer-front.js'
import {
  admittedOn,
  answersOf,
  inStep,
  SyncedWorld,
  submitAll,
} from '../../../support/server/synced-world.js'
import { type Environment, type TestServer, treeOf, useServers } from '../../../support/server/test-server.js'

// Hosts in step, over HTTP, by what one offers and the other asks for.

const { start } = useServers()
const ORDINALS = ['tm_ordinals']

async function host(world: SyncedWorld, env: Environment = {}): Promise<TestServer> {
  return await start({ ...treeOf(world.chain.deployment), SYNC_INTERVAL_MS: '100', ...env })
}

test('hosts that have grown apart hold the same again, and so does one that knows only one of them', async () => {
  const world = new SyncedWorld()
  const doors = [await openFront(), await openFront()] as const
  const left = await host(world, { SYNC_PEERS: doors[1].url })
  const right = await host(world, { SYNC_PEERS: doors[0].url })
  for (const server of [left, right]) await submitAll(server, [world.genesis])
  for (const [side, server] of [
    ['a', left],
    ['b', right],
  ] as const) {
    const mints = [world.mintName(side), ...world.mint(9, side)]
    // Either has the first one of the other, which spends the root before or after its own.
    await submitAll(left, mints.slice(0, 1))
    await submitAll(right, mints.slice(0, 1))
    await submitAll(server, mints.slice(1))
    await submitAll(server, [...world.inscribe(3, side), ...world.transfer(8, side)], ORDINALS)
  }
  const all = new Set([left, right].flatMap((server) => server.rows().admissions ?? [])).size
  doors[0].host = left
  doors[1].host = right
  await inStep(all, left, right)
  const third = await host(world, { SYNC_PEERS: doors[0].url })
  await inStep(all, left, third)
  expect(await answersOf(left, world.mints.keys())).toEqual(await answersOf(right, world.mints.keys()))
})

test('a host gets names, nodes and histories from an engine, which refuses what is behind a proven transaction', async () => {
  const world = new SyncedWorld()
  const full = await host(world)
  const mints = [world.genesis, ...world.mint(12)]
  const moves = [...world.inscribe(3), ...world.transfer(9)]
  await submitAll(full, mints)
  await submitAll(full, moves, ORDINALS)
  const front = await openFront(full)
  const engine = asEngine([...mints, ...moves])
  const graphs: string[] = []
  const topics = new Set<string | undefined>()
  let lookups = 0
  front.fault = (exchange) => {
    const { path, topic, asked } = exchange
    if (path === '/requestForeignGASPNode') {
      topics.add(topic)
      graphs.push(`${asked.graphID === `${asked.txid}.${asked.outputIndex}`}`)
    }
    // It offers an output a moment before its lookup service knows of it.
    if (path === '/lookup' && lookups++ === 0) return { type: 'output-list', outputs: [] }
    return engine(exchange)
  }
  const empty = await host(world, { SYNC_PEERS: front.url })
  await inStep(await admittedOn(full), full, empty)
  expect(new Set(graphs)).toEqual(new Set(['true', 'false']))
  expect(topics).toEqual(new Set(['tm_names', 'tm_ordinals']))
  expect(lookups).toBeGreaterThan(1)
})
