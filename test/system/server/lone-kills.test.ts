import { join } from 'node:path'
import fc from 'fast-check'
import { builtPackage } from '../../support/cli/built-package.js'
import { lonePlan } from '../../support/follow/lone-chain.js'
import { expectLoneRun, loneProcess } from '../../support/follow/lone-run.js'
import { rounds } from '../../support/nightly.js'
import { useServers } from '../../support/server/test-server.js'

// As test/unit/chain/ancestors/lone-transactions.test.ts, with a process that is killed after every third submission.

const servers = useServers()
const { SEED = '1' } = process.env

test.each(fc.sample(lonePlan, { seed: Number(SEED), numRuns: rounds(1, 2) }))(
  'a process that is killed while it fetches ancestors goes on with what is left',
  async (plan) => {
    const main = join(await builtPackage(), 'dist/cli/main.js')
    const DATA_DIR = await servers.folder()
    const restarts = [...plan.order.keys()].filter((at) => at % 3 === 2)
    await expectLoneRun({ ...plan, restarts }, (env) => loneProcess({ ...env, DATA_DIR, PORT: '0' }, main))
  },
  600_000,
)
