import { join } from 'node:path'
import { builtPackage } from '../../support/cli/built-package.js'
import { expectLiveRuns } from '../../support/follow/live-runs.js'
import { IS_NIGHTLY } from '../../support/nightly.js'

// As test/unit/chain/follow/live.test.ts, with processes that are killed in between.

test('a process that is killed while it follows the chain equals the model at rest', async () => {
  const main = join(await builtPackage(), 'dist/cli/main.js')
  const size = IS_NIGHTLY ? { deeds: 24, events: 20, kills: 10 } : { deeds: 12, events: 8, kills: 4 }
  const happened = await expectLiveRuns({ runs: 1, parallel: 1, size, main })
  expect(happened.kill).toBeGreaterThan(0)
}, 3_600_000)
