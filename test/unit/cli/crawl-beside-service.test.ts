import { runCrawl } from '../../../src/cli/crawl.js'
import type { OpenapiDocument } from '../../../src/gateway/openapi/document.js'
import { readConfig } from '../../../src/server/config/config.js'
import { packageVersion } from '../../../src/server/config/package-info.js'
import type { ChainStatus } from '../../../src/server/telemetry/chain-status.js'
import { keptOutput } from '../../support/cli/commands.js'
import { CrawledTree } from '../../support/follow/crawled-tree.js'
import { startJungleBus } from '../../support/follow/junglebus.js'
import { startHeaderService } from '../../support/server/header-service.js'
import { contractOf } from '../../support/server/openapi-contract.js'
import { SILENT, treeOf, useServers } from '../../support/server/test-server.js'
import { until } from '../../support/server/waiting.js'

const servers = useServers()

test('a service says how far it has followed the chain, and a crawl beside it reports that', async () => {
  const tree = new CrawledTree()
  const { settings } = await startHeaderService(tree.headers)
  const { url: source, service } = await startJungleBus()
  service.know(...tree.records)
  const env = {
    ...{ ...treeOf(tree.chain.deployment), ...settings, CHAIN_SOURCES: `junglebus=${source}` },
    ...{ HEADERS_POLL_MS: '50', FOLLOW_POLL_MS: '1000', CHAIN_SOURCE_RATE: '1000' },
  }
  const server = await servers.start(env)
  const answer = await until(async () => {
    const found = await server.ask('/health')
    return (found.json as ChainStatus).lag === 0 ? found : undefined
  }, 'the service keeps up')
  const { height } = tree.headers.bestTip
  const { mints, transfers } = (answer.json as ChainStatus).follow ?? {}
  expect(answer.json).toMatchObject({
    ...{ version: packageVersion(), ready: true, height, lag: 0, contradictions: 0 },
    follow: { state: 'keeping up', ordinals: 'names', height },
    sources: [{ name: `junglebus ${source}`, state: 'ok', failures: 0 }],
  })
  expect(mints).toBeGreaterThan(5)
  const document = (await server.ask('/openapi.json')).json as OpenapiDocument
  expect(contractOf(document).judge({ path: '/health', question: {}, answer }).complaints).toEqual([])
  const metrics = (await server.ask('/metrics')).body.toString()
  expect(metrics).toContain(`\nminetree_follow_mints_total ${mints}\n`)
  expect(metrics).toContain(`minetree_source_requests_total{use="follow",source="junglebus ${source}"}`)

  const config = readConfig({ ...env, DATA_DIR: server.dataDir, PORT: new URL(server.url).port })
  for (const json of [true, false]) {
    const { output, written } = keptOutput({ json })
    const { signal } = new AbortController()
    await runCrawl({
      ...{ config, output, signal, logger: SILENT, parallel: 1 },
      ...{ namesOnly: false, maxUnproven: 1, maxTime: 60 },
    })
    const text = await written()
    if (json)
      expect(JSON.parse(text)).toMatchObject({
        ...{
          service: server.url,
          state: 'keeping up',
          mints,
          transfers,
          height,
          chainHeight: height,
          lag: 0,
        },
      })
    else expect(text).toContain(`the service at ${server.url} follows the chain: keeping up\n`)
  }
})
