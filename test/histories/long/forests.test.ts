import { FOREST, forest, growForest } from '../forest.js'
import { differencesOf } from '../questions.js'
import type { Run } from '../run.js'
import { StoreHost } from '../store-host.js'
import { answeringRows } from '../stored.js'
import { expectRuns } from '../trial.js'

// `npm run forests` does thousands of runs.

/** In one run of so many, each route is asked about each output at the end. */
const EVERYTHING_EVERY = 10

const hosts: StoreHost[] = []
beforeAll(async () => {
  hosts.push(await StoreHost.open(FOREST), await StoreHost.open(FOREST))
})
afterAll(async () => {
  for (const host of hosts) await host.close()
})

/** Another host, filled from scratch in block order, has the same rows. False: it could not be filled. */
async function expectRebuilt(run: Run<StoreHost>, other: StoreHost): Promise<boolean> {
  await other.clear(run.chain.headers)
  const rebuilt = await run.rebuiltOn(other)
  if (rebuilt === undefined) return false
  const [got, expected] = [
    await answeringRows(other, run.history),
    await answeringRows(run.host, run.history),
  ]
  run.expectSame('when another host was filled in block order', differencesOf(got, expected))
  return true
}

test('whatever is submitted in whatever order, the answers are those of what counts', async () => {
  const [host, other] = hosts
  if (host === undefined || other === undefined) throw new Error('there are two hosts')
  await expectRuns({
    plan: forest,
    runs: 15,
    least: [
      ...['rebuilt', 'reorg', 'stale', 'branch reorganised', 'submit: lost', 'submit: taken'],
      ...['submit: taken, proven', 'ingest: known', 'ingest: unknown', 'ingest: known, stale'],
      ...['submit: waits', 'sight: seen, and counts', 'sight: rejected, and counts no more'],
    ],
    async run(plan, index) {
      const run = await growForest(plan, host)
      await run.submitProofs()
      const everything = index % EVERYTHING_EVERY === 0
      await run.read('at the end', { everything })
      const isRebuilt = await expectRebuilt(run, other)
      return { ...run.happened, ...(isRebuilt && { rebuilt: 1 }) }
    },
  })
}, 3_600_000)
