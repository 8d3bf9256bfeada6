import { describeWithMariadb } from '../../support/storage/databases.js'
import { EngineRun, enginePlan } from '../engine-run.js'
import { expectRuns } from '../trial.js'

describeWithMariadb('in a host on MariaDB', (mariadb) => {
  test('what the engine 0.4.6 has applied is in every answer of the plugin, whichever hooks it called', async () => {
    await expectRuns({
      plan: enginePlan,
      runs: 4,
      run: async (plan) =>
        await EngineRun.through(plan, { name: 'host', KNEX_URL: await mariadb.database(), MONGO_URL: '' }),
    })
  }, 3_600_000)
})
