import { describeWithMariadb } from '../../support/storage/databases.js'
import { testAtNight } from '../../support/tests-at-night.js'
import { EngineRun, enginePlan } from '../engine-run.js'
import { expectRuns } from '../trial.js'

// `test/histories/engine.test.ts` does it on SQLite by day, and `test/system/plugin` has the contract of the plugin on MariaDB.

describeWithMariadb('in a host on MariaDB', (mariadb) => {
  testAtNight(
    'what the engine 0.4.6 has applied is in every answer of the plugin, whichever hooks it called',
    async () => {
      await expectRuns({
        plan: enginePlan,
        runs: 40,
        run: async (plan) =>
          await EngineRun.through(plan, { name: 'host', KNEX_URL: await mariadb.database(), MONGO_URL: '' }),
      })
    },
    3_600_000,
  )
})
