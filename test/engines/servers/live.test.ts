import { join } from 'node:path'
import { builtPackage } from '../../support/cli/built-package.js'
import { expectLiveRuns } from '../../support/follow/live-runs.js'
import { onEachSharedEngine } from '../../support/storage/databases.js'

// As test/unit/chain/follow/live.test.ts, with processes on the databases that are killed in between.

onEachSharedEngine('a service that follows the chain on', (databases) => {
  test('equals the model at rest, though it is killed in between', async () => {
    const main = join(await builtPackage(), 'dist/cli/main.js')
    const size = { deeds: 18, events: 14, kills: 10 }
    const happened = await expectLiveRuns({
      ...{ runs: 1, parallel: 1, size, main },
      env: () => databases.settings(),
    })
    expect(happened.kill).toBeGreaterThan(0)
  }, 3_600_000)
})
