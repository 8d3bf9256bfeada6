import { useFollowWorlds } from '../../support/follow/follow-world.js'
import type { TestServer } from '../../support/server/test-server.js'
import { until } from '../../support/server/waiting.js'
import { onMariadb } from '../../support/storage/databases.js'

// Gateways with the same settings over one log: one of them follows the chain, and another one when that one is gone.

const FOLLOWS = {
  CHAIN_SOURCE_RATE: '10000',
  FOLLOW_POLL_MS: '300',
  HEADERS_POLL_MS: '200',
}

onMariadb('gateways over a log in', (databases) => {
  const { world, servers } = useFollowWorlds()
  const follows = async (server: TestServer): Promise<boolean> =>
    ((await server.ask('/health')).json as { follow?: unknown }).follow !== undefined

  test('follow the chain one at a time, and all know how far', async () => {
    const { tree, env, url } = await world()
    const settings = { ...env, ...FOLLOWS, ...(await databases.settings()), CHAIN_SOURCES: url }
    const all = await Promise.all([servers.start(settings), servers.start(settings)])
    const { height, hash } = tree.headers.bestTip
    const asOf = JSON.stringify({ height, hash })
    for (const server of all) {
      await until(async () => (await server.ask('/svc/names/zz')).status === 404, 'it has caught up')
      await until(
        async () => (await server.ask('/svc/names/bab')).headers['x-as-of'] === asOf,
        'it says as of which block',
      )
    }
    const following = await Promise.all(all.map(follows))
    expect(following.filter(Boolean)).toHaveLength(1)
    const [holder, other] = following[0] ? all : all.toReversed()
    await holder?.stop()
    await until(async () => other !== undefined && (await follows(other)), 'the other one follows')
    expect((await other?.ask('/svc/names/bab'))?.headers['x-as-of']).toBe(asOf)
  })
})
