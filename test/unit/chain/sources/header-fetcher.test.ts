import { setImmediate as nextLoop } from 'node:timers/promises'
import { openFetcher } from '../../../../src/chain/sources/header-fetcher.js'
import { SourceClient } from '../../../../src/chain/sources/source-client.js'
import { serving } from '../../../support/server/connections.js'
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

test.each([
  ['without an envelope', '/v2/tip', (tip: object) => tip],
  ['in an envelope', '/v2/tip', (value: object) => ({ status: 'success', value })],
  ['at an earlier place', '/v2/tip/header', (value: object) => ({ status: 'success', value })],
])('the tip of a Chaintracks is read %s', async (_, path, answer) => {
  // As go-chaintracks and Arcade write it, with the header's other fields.
  const tip = { version: 1, prevHash: '00'.repeat(32), time: 1231006505, height: 7, hash: 'ab'.repeat(32) }
  const { url } = await serving((request, response) => {
    response.writeHead(request.url === path ? 200 : 404).end(JSON.stringify(answer(tip)))
  })
  const { tip: asked } = openFetcher('chaintracks', new SourceClient({ url }), { pageTimeout: 1000 })
  expect(await asked()).toEqual({ height: 7, hash: 'ab'.repeat(32) })
})
