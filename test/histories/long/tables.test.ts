import { StoreHost } from '../store-host.js'
import { expectRuns } from '../trial.js'
import { HAPPENS_WIDE, runWide, WIDE, wide } from '../wide.js'

// The tables that a database of a host still has, on SQLite. `RUNS=3000` does thousands of runs.

/** In one run of so many, each route is asked about each output at the end. */
const EVERYTHING_EVERY = 5

let host: StoreHost
beforeAll(async () => {
  host = await StoreHost.open(WIDE)
})
afterAll(async () => await host.close())

test('whatever happens in whatever order, every answer over tables is that of all that is known', async () => {
  await expectRuns({
    plan: wide,
    runs: 4,
    least: HAPPENS_WIDE,
    async run(plan, index) {
      const run = await runWide(plan, async ({ headers }) => {
        await host.clear(headers)
        return host
      })
      if (!run.mayTie) await run.read('at the end', { everything: index % EVERYTHING_EVERY === 0 })
      return run.happened
    },
  })
}, 3_600_000)
