import fc from 'fast-check'
import { lonePlan } from '../../support/follow/lone-chain.js'
import { expectLoneRun, loneServer } from '../../support/follow/lone-run.js'
import { useServers } from '../../support/server/test-server.js'
import { onEachSharedEngine } from '../../support/storage/databases.js'

// As test/unit/chain/ancestors/lone-transactions.test.ts, on the databases.

const { RUNS = '2', SEED = '1' } = process.env
const servers = useServers()

onEachSharedEngine('ancestors are fetched on', (databases) => {
  test.each(fc.sample(lonePlan, { seed: Number(SEED), numRuns: Number(RUNS) }))(
    'proven transactions without parents come to the same in any order',
    async (plan) => {
      const settings = await databases.settings()
      await expectLoneRun(plan, async (env) => loneServer(await servers.start({ ...env, ...settings })))
    },
    600_000,
  )
})
