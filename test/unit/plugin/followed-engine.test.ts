import { expectLiveRuns } from '../../support/follow/live-runs.js'
import { rounds } from '../../support/nightly.js'
import { useServers } from '../../support/server/test-server.js'

// Hosts of the engine 0.4.6 follow generated chains, as services do in test/unit/chain/follow/live.test.ts.

const { folder } = useServers()

test('a host that follows the chain equals the model at rest', async () => {
  // One that is killed keeps its job for 30 seconds: test/system/plugin/followed-hosts.test.ts.
  const size = { deeds: 24, events: 14, kills: 0 }
  const engineDatabase = async (): Promise<string> => `sqlite:${await folder()}`
  await expectLiveRuns({ runs: rounds(1, 20), parallel: 2, size, engineDatabase })
}, 3_600_000)
