import fc from 'fast-check'
import { lonePlan } from '../../../support/follow/lone-chain.js'
import { expectLoneRun, loneServer } from '../../../support/follow/lone-run.js'
import { useServers } from '../../../support/server/test-server.js'

const servers = useServers()
const { RUNS = '4', SEED = '1', ONLY } = process.env

const plans = fc.sample(lonePlan, { seed: Number(SEED), numRuns: Number(RUNS) })
const chosen = [...plans.entries()].filter(([at]) => ONLY === undefined || at === Number(ONLY))

test.each(chosen)(
  'proven transactions without parents, in any order, with a source that fails now and then: %i',
  async (_, plan) => {
    const DATA_DIR = await servers.folder()
    await expectLoneRun(plan, async (env, tracker) =>
      loneServer(await servers.start({ ...env, DATA_DIR }, { tracker })),
    )
  },
)
