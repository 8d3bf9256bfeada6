import { FakeChain, type FakeTransaction } from '../../../support/protocol/fake-chain.js'
import { HeaderChain } from '../../../support/server/header-chain.js'
import { type HeaderService, startHeaderService } from '../../../support/server/header-service.js'
import {
  type Answer,
  AS_OPERATOR,
  type Environment,
  OPERATOR,
  type StartOptions,
  type TestServer,
  treeOf,
  untilReady,
  useServers,
} from '../../../support/server/test-server.js'
import { until } from '../../../support/server/waiting.js'

// A server with headers of its own (docs/follow.md).

const servers = useServers()

interface World {
  chain: FakeChain
  headers: HeaderChain
  service: HeaderService
  server: TestServer
  env: Environment
  submit(transaction: FakeTransaction): Promise<Answer>
}

async function setUp(
  options: { kind?: string; isAway?: boolean; env?: Environment } & StartOptions = {},
): Promise<World> {
  const { kind = 'junglebus', isAway = false, env: more, ...start } = options
  const chain = new FakeChain()
  const headers = new HeaderChain()
  const { url, service } = await startHeaderService(headers)
  if (isAway) service.mood = 'fails'
  const { height, hash } = headers.bestTip
  const env = {
    ...treeOf(chain.deployment),
    CHAIN_TRACKER: 'headers',
    HEADERS_SOURCES: `${kind}=${url}`,
    HEADERS_CHECKPOINT: `${height}:${hash}`,
    HEADERS_POLL_MS: '25',
    ...more,
  }
  const server = await servers.start(env, start)
  const submit = (transaction: FakeTransaction) => server.submit(headers.branch.beef(transaction))
  return { chain, headers, service, server, env, submit }
}

/** Submits until the header of the block is known. */
async function submitted({ submit }: World, transaction: FakeTransaction): Promise<Answer> {
  return await until(async () => {
    const answer = await submit(transaction)
    return answer.status === 503 ? undefined : answer
  })
}

test('after a restart without its sources, it takes proofs of the blocks that it knows', async () => {
  const world = await setUp()
  const { chain, headers, service, server, env } = world
  const mint = chain.mint('a')
  headers.mine([chain.genesis])
  headers.mine([mint])
  expect((await submitted(world, chain.genesis)).status).toBe(200)
  await until(async () => (await server.ask('/health/ready')).status === 200)
  await server.stop()
  service.mood = 'fails'
  const again = await servers.start({ ...env, DATA_DIR: server.dataDir })
  expect((await again.submit(headers.branch.beef(mint))).status).toBe(200)
})

test('the operator asks for new headers at once, where nothing polls', async () => {
  const world = await setUp({ env: { HEADERS_POLL_MS: '0', ...OPERATOR } })
  const { chain, headers, server, submit } = world
  await untilReady(server)
  headers.mine([chain.genesis])
  expect((await submit(chain.genesis)).status).toBe(503)
  const { status, json } = await server.ask('/admin/headers', { method: 'POST', headers: AS_OPERATOR })
  expect({ status, json }).toMatchObject({ status: 200, json: { tip: headers.bestTip.height } })
  expect((await submit(chain.genesis)).status).toBe(200)
})
