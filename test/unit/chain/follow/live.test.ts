import { expectLiveRuns } from '../../../support/follow/live-runs.js'
import { rounds } from '../../../support/nightly.js'

// Services in this process follow generated chains that grow and fork, through sources that lie, stall, are busy and come back,
// while clients submit some of the transactions. At rest each answers as the model does. `test/support/follow/live-runs.ts` says
// how to do more runs.

test('a service that follows the chain equals the model at rest', async () => {
  const size = { deeds: 36, events: 24, kills: 2 }
  const happened = await expectLiveRuns({ runs: rounds(2, 40), parallel: 2, size })
  expect(happened).toMatchObject({ 'reorg of 3': expect.any(Number), restart: expect.any(Number) })
}, 3_600_000)

test('so does one whose first source is another host', async () => {
  const size = { deeds: 20, events: 12, kills: 2 }
  await expectLiveRuns({ runs: 1, parallel: 1, size, isBehindPeer: true })
}, 3_600_000)
