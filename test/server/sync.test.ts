import { answersOf, heldRows, rowCounts, SyncedWorld, submitAll, until } from '../support/synced-world.js'
import { type Environment, type TestServer, treeOf, useServers } from '../support/test-server.js'

// Two hosts in step, over HTTP, by what one offers and the other asks for.

const { start } = useServers()
const ORDINALS = ['tm_ordinals']

async function host(world: SyncedWorld, env: Environment = {}): Promise<TestServer> {
  return await start({ ...treeOf(world.chain.deployment), SYNC_INTERVAL_MS: '50', ...env })
}

/** Waits until two hosts hold the same, row by row. */
async function inStep(one: TestServer, other: TestServer): Promise<void> {
  const counts = () => JSON.stringify(rowCounts(one)) === JSON.stringify(rowCounts(other))
  await until(counts, 'two hosts hold as much as each other')
  await until(() => JSON.stringify(heldRows(one)) === JSON.stringify(heldRows(other)), 'and the same')
}

test('a host that starts empty ends with the names, nodes, origins and contents of its peer', async () => {
  const world = new SyncedWorld()
  const full = await host(world)
  const { beefOf } = await import('../support/fake-chain.js')
  await submitAll(full, [beefOf(world.chain.genesis), ...world.mint(60)])
  await submitAll(full, [...world.inscribe(10), ...world.transfer(40)], ORDINALS)
  const empty = await host(world, { SYNC_PEERS: full.url })
  await inStep(empty, full)
  expect(await answersOf(empty, world.mints.keys())).toEqual(await answersOf(full, world.mints.keys()))
})
