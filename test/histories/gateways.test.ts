import { GatewaysHost } from './gateways-host.js'
import { expectRuns } from './trial.js'
import { runWide, WIDE, wide } from './wide.js'

const HOSTS = { tracker: new GatewaysHost(WIDE, 'tracker'), headers: new GatewaysHost(WIDE, 'headers') }
afterAll(async () => {
  for (const host of Object.values(HOSTS)) await host.close()
})

test.each(['tracker', 'headers'] as const)(
  'where %s decides about proofs, any of three gateways over one log answers as if they were one',
  async (tracker) => {
    const host = HOSTS[tracker]
    await expectRuns({
      plan: wide,
      runs: 1,
      least: [],
      async run(plan) {
        const run = await runWide(plan, async ({ headers }) => {
          await host.clear(headers)
          return host
        })
        await run.read('at the end', { everything: false })
        run.expectSame('when the index is derived again', host.rebuiltDifferences())
        return run.happened
      },
    })
  },
  3_600_000,
)
