import { FactsHost } from '../facts-host.js'
import { FOREST, forest, growForest } from '../forest.js'
import { expectRuns } from '../trial.js'

// `npm run forests` does thousands of runs.

/** In one run of so many, each route is asked about each output at the end. */
const EVERYTHING_EVERY = 10

const hostsBy = (tracker: 'tracker' | 'headers') => ({
  host: new FactsHost(FOREST, tracker),
  other: new FactsHost(FOREST, tracker),
})
const HOSTS = { tracker: hostsBy('tracker'), headers: hostsBy('headers') }
afterAll(async () => {
  for (const { host, other } of Object.values(HOSTS)) for (const each of [host, other]) await each.close()
})

test.each(['tracker', 'headers'] as const)(
  'whatever is submitted in whatever order, the answers are those of what counts (proofs: %s)',
  async (tracker) => {
    const { host, other } = HOSTS[tracker]
    await expectRuns({
      plan: forest,
      runs: 8,
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
        run.expectSame('when the index is derived again', host.rebuiltDifferences())
        await other.clear(run.chain.headers)
        const rebuilt = await run.rebuiltOn(other)
        await rebuilt?.read('when another host was filled in block order', { everything })
        return { ...run.happened, ...(rebuilt && { rebuilt: 1 }) }
      },
    })
  },
  3_600_000,
)
