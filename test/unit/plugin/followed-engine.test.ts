import { expectLiveRuns } from '../../support/follow/live-runs.js'
import { useServers } from '../../support/server/test-server.js'

// Hosts of the engine 0.4.6 follow generated chains, as services do in test/unit/follow/live.test.ts.

const { folder } = useServers()

test('a host that follows the chain equals the model at rest', async () => {
  const size = { deeds: 24, events: 14, kills: Number(process.env.KILLS ?? 0) }
  const engineDatabase = async (): Promise<string> => `sqlite:${await folder()}`
  await expectLiveRuns({ runs: 1, parallel: 1, size, engineDatabase })
}, 3_600_000)
