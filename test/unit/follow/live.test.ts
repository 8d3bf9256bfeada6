import { expectLiveRuns } from '../../support/follow/live-runs.js'

// Services in this process follow generated chains that grow and fork, through sources that lie, stall, are busy and come back,
// while clients submit some of the transactions. At rest each answers as the model does.

test('a service that follows the chain equals the model at rest', async () => {
  const happened = await expectLiveRuns({ runs: 6, parallel: 3, size: { deeds: 36, events: 24 } })
  expect(happened).toMatchObject({ rest: expect.any(Number), 'reorg of 3': expect.any(Number) })
}, 3_600_000)
