import { join } from 'node:path'
import { builtPackage } from '../../support/cli/built-package.js'
import { expectLiveRuns } from '../../support/follow/live-runs.js'

// As test/unit/follow/live.test.ts, with processes that are killed in between.

test('a process that is killed while it follows the chain equals the model at rest', async () => {
  const main = join(await builtPackage(), 'dist/src/cli/main.js')
  const size = { deeds: 30, events: 24, kills: 10 }
  const happened = await expectLiveRuns({ runs: 2, parallel: 2, size, main })
  expect(happened.kill).toBeGreaterThan(3)
}, 3_600_000)
