import { useFollowWorlds } from '../../support/follow/follow-world.js'
import type { TestServer } from '../../support/server/test-server.js'
import { until } from '../../support/server/waiting.js'
import { onMariadb } from '../../support/storage/databases.js'
import { testAtNight } from '../../support/tests-at-night.js'

// Several servers on one database, one of which follows the tree: the others know what is absent when that one does.
// By day, `one-follower.test.ts` has the end of it, and `test/unit/server/absence.test.ts` what one server says before.

const FOLLOWS = { CHAIN_SOURCE_RATE: '10000', FOLLOW_POLL_MS: '100', HEADERS_POLL_MS: '100' }

onMariadb('servers on one', (databases) => {
  const { world, servers } = useFollowWorlds()
  const statusOf = async (server: TestServer, path: string): Promise<number> =>
    (await server.ask(path)).status

  testAtNight(
    'know nothing of absence until one of them has followed the tree, and all do after that',
    async () => {
      const { tree, service, env, url } = await world()
      const held = tree.mintOf('b').outpoint(1)
      service.fault = (path) => (path.includes(held) ? { kind: 'status', status: 500 } : undefined)
      const settings = { ...env, ...FOLLOWS, ...(await databases.settings()) }
      const idle = { ...settings, CHAIN_SOURCES: 'none' }
      const bounded = await servers.start(idle)
      expect(await statusOf(bounded, '/svc/names/zz')).toBe(404)
      await bounded.stop()
      const follower = await servers.start({ ...settings, CHAIN_SOURCES: url })
      const beside = await servers.start(idle)
      for (const server of [follower, beside]) {
        await until(async () => (await statusOf(server, '/svc/names/abc')) === 200, 'a name is found')
        // What another gateway has just begun to follow is heard of some seconds later.
        await until(
          async () => (await statusOf(server, '/svc/names/zz')) === 503,
          'it knows that more may come',
        )
        expect(await statusOf(server, '/svc/names/mine/zz')).toBe(503)
      }
      service.fault = () => undefined
      const { height, hash } = tree.headers.bestTip
      for (const server of [follower, beside]) {
        await until(async () => (await statusOf(server, '/svc/names/zz')) === 404, 'it has caught up')
        await until(
          async () =>
            (await server.ask('/svc/names/bab')).headers['x-as-of'] === JSON.stringify({ height, hash }),
          'it says as of which block',
        )
      }
      await follower.stop()
      await beside.stop()
      service.fault = () => ({ kind: 'status', status: 500 })
      const again = await servers.start({ ...settings, CHAIN_SOURCES: url })
      expect(await statusOf(again, '/svc/names/zz')).toBe(404)
      expect((await again.ask('/svc/names/bab')).json).toMatchObject({ asOf: { height, hash } })
    },
  )
})
