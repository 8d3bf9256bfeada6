import { useFollowWorlds } from '../../support/follow/follow-world.js'
import type { Environment } from '../../support/server/test-server.js'
import { until } from '../../support/server/waiting.js'

// The service follows the chain by itself, and answers meanwhile.

const { world, servers } = useFollowWorlds()

/** The settings of a service that follows the chain of a world, and hears of blocks soon. */
const FOLLOWS = { CHAIN_SOURCE_RATE: '10000', FOLLOW_POLL_MS: '100', HEADERS_POLL_MS: '100' }

test('a subscription is read at the JungleBus, without block headers too', async () => {
  const { service, env, url, tracker } = await world()
  const feed = { CHAIN_SOURCES: url, JUNGLEBUS_SUBSCRIPTION: 'c2f8' }
  const settings: Environment = { ...env, ...FOLLOWS, ...feed }
  for (const isChecked of [true, false]) {
    service.asked.length = 0
    service.fault = (path) =>
      path === '/v1/block_header/tip' ? { kind: 'body', body: Buffer.from('{"height":800100}') } : undefined
    const server = isChecked
      ? await servers.start(settings, { tracker })
      : await servers.start({ ...settings, CHAIN_TRACKER: 'scripts-only' })
    await until(() => service.asked.some((path) => path.includes('/from_block/c2f8?')), 'the feed is read')
    const isAsked = service.asked.includes('/v1/block_header/tip')
    expect(isAsked).toBe(!isChecked)
    await server.stop()
  }
})

test('it stops while its source does not answer', async () => {
  const { service, env, url, tracker } = await world()
  service.fault = () => 'never'
  const server = await servers.start({ ...env, ...FOLLOWS, CHAIN_SOURCES: url }, { tracker })
  await until(() => service.asked.length > 0, 'the source is asked')
  await server.stop()
})

test('without a tree or with CHAIN_SOURCES=none it asks nobody', async () => {
  const { service, env, url, tracker } = await world()
  const idle = await servers.start({ ...env, ...FOLLOWS, CHAIN_SOURCES: 'none' }, { tracker })
  const treeless = await servers.start({ SEED: 'none', ...FOLLOWS, CHAIN_SOURCES: url }, { tracker })
  for (const server of [idle, treeless]) await server.stop()
  expect(service.asked).toEqual([])
})
