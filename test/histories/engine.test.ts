import { useServers } from '../support/server/test-server.js'
import { EngineRun, enginePlan } from './engine-run.js'
import { expectRuns } from './trial.js'

const { folder } = useServers()

test('what the engine 0.4.6 has applied is in every answer of the plugin, whichever hooks it called', async () => {
  await expectRuns({
    plan: enginePlan,
    runs: 6,
    async run(plan) {
      const database = { name: 'host', KNEX_URL: `sqlite:${await folder()}`, MONGO_URL: '' }
      return await EngineRun.through(plan, database)
    },
  })
}, 3_600_000)
