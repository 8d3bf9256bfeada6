import { FakeChain } from '../../../support/protocol/fake-chain.js'
import { HeaderChain } from '../../../support/server/header-chain.js'
import { useHeaderServices } from '../../../support/server/header-service.js'
import { treeOf, untilReady, useServers } from '../../../support/server/test-server.js'
import { until } from '../../../support/server/waiting.js'

// `/health/ready` is 503 while submissions would fail, and only then (docs/operating.md).

const servers = useServers()
const services = useHeaderServices()

test('with its own headers, a host is ready while some source responds, and again once one does', async () => {
  const chain = new FakeChain()
  const headers = new HeaderChain()
  const [one, other] = [await services.start(headers), await services.start(headers)]
  const { height, hash } = headers.bestTip
  const server = await servers.start({
    ...treeOf(chain.deployment),
    ...{ CHAIN_TRACKER: 'headers', HEADERS_CHECKPOINT: `${height}:${hash}`, HEADERS_POLL_MS: '25' },
    HEADERS_SOURCES: `junglebus=${one.url},chaintracks=${other.url}`,
  })
  await untilReady(server)
  one.service.mood = 'fails'
  await until(async () => {
    const { json } = await server.ask('/health')
    return (json as { headers: { sources: { state: string }[] } }).headers.sources[0]?.state === 'resting'
  }, 'the first source rests')
  headers.mine([chain.genesis])
  const submit = () => server.submit(headers.branch.beef(chain.genesis))
  const answer = await until(async () => {
    const submitted = await submit()
    return submitted.status === 503 ? undefined : submitted
  }, 'the block is known')
  expect(answer.status).toBe(200)
  expect((await server.ask('/health/ready')).status).toBe(200)
  const metrics = (await server.ask('/metrics')).body.toString()
  expect(metrics).toContain(`minetree_source_resting{use="headers",source="junglebus ${one.url}"} 1\n`)
  expect(metrics).toContain(`minetree_source_resting{use="headers",source="chaintracks ${other.url}"} 0\n`)
})

test('a host that does not check proofs is ready, and takes them', async () => {
  const chain = new FakeChain()
  const headers = new HeaderChain()
  headers.mine([chain.genesis])
  const server = await servers.start({ ...treeOf(chain.deployment), CHAIN_TRACKER: 'scripts-only' })
  await untilReady(server)
  expect((await server.submit(headers.branch.beef(chain.genesis))).status).toBe(200)
  expect((await server.ask('/health')).json).not.toHaveProperty('headers')
  expect((await server.ask('/metrics')).body.toString()).not.toContain('minetree_chain_height')
})
