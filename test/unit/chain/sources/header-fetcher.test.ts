import { setImmediate as nextLoop } from 'node:timers/promises'
import { openFetcher } from '../../../../src/chain/sources/header-fetcher.js'
import { SourceClient } from '../../../../src/chain/sources/source-client.js'
import { HeaderChain } from '../../../support/server/header-chain.js'
import { startHeaderService } from '../../../support/server/header-service.js'

test('readers do not wait while thousands of headers are read from JSON', async () => {
  const chain = new HeaderChain()
  chain.grow(5000)
  const { url } = await startHeaderService(chain)
  const client = new SourceClient({ url })
  let isReading = false
  let turns = 0
  const { ask } = client
  client.ask = async (...question: Parameters<typeof ask>) => {
    const answer = await ask.apply(client, question)
    isReading = true
    return answer as never
  }
  const counting = (async () => {
    for (; !isReading || turns < 1000; await nextLoop()) if (isReading) turns++
  })()
  const { headers } = openFetcher('junglebus', client, { pageTimeout: 30_000 })
  const { height, tip } = { height: chain.bestTip.height - 4999, tip: chain.bestTip.height }
  const previous = Buffer.from(chain.branch.block(height - 1)?.header.hash ?? '', 'hex').reverse()
  expect(await headers({ from: height, count: 5000, previous, tip })).toHaveLength(5000 * 80)
  expect(turns).toBeGreaterThan(1)
  await counting
  await client.close()
})
