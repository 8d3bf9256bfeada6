import { utf8 } from '../../backend/src/protocol/bytes.js'
import { FactsHost } from './facts-host.js'
import { TEXTS } from './history.js'
import { expectRuns, IS_LONG } from './trial.js'
import { HAPPENS_WIDE, HAPPENS_WIDER, runWide, WIDE, wide, wider } from './wide.js'

// `npm run histories` does thousands of runs.

/** In one run of so many, each route is asked about each output at the end. */
const EVERYTHING_EVERY = IS_LONG ? 10 : 20
/** In one run of so many, some content is purged after that. */
const PURGED_EVERY = 4

/**
 * What is pending raises a fact, is in no block any more, is built on by one, or is behind one that a proof restores; what becomes
 * final has lost to several; what waits for a proof comes before what brings it.
 */
const FOUND = [
  [90210, '46'],
  [12, '25'],
  [21, '62'],
  [22, '29'],
  [31, '68'],
  [33, '16'],
  [33, '96'],
  [42, '124'],
  [535362280, '39'],
  [536890607, '293'],
] as const

const HOSTS = {
  tracker: new FactsHost(WIDE),
  headers: new FactsHost(WIDE, 'headers'),
  'scripts-only': new FactsHost(WIDE, 'scripts-only'),
}
afterAll(async () => {
  for (const host of Object.values(HOSTS)) await host.close()
})

test.each(['tracker', 'headers', 'scripts-only'] as const)(
  'where %s decides about proofs, every answer over facts is that of all that is known, and the index that of a rebuild',
  async (tracker) => {
    const host = HOSTS[tracker]
    await expectRuns({
      plan: wider(tracker),
      // With those that once found something, a hundred for all.
      runs: 28,
      // They find faults that nothing else does (`faults.ts`).
      least: [...HAPPENS_WIDE, ...HAPPENS_WIDER, 'purged: some'],
      found: tracker === 'scripts-only' ? [] : FOUND,
      foundIn: wide,
      async run(plan, index) {
        const run = await runWide(plan, async ({ headers }) => {
          await host.clear(headers)
          return host
        })
        if (!run.mayTie) await run.read('at the end', { everything: index % EVERYTHING_EVERY === 0 })
        run.expectSame('when the index is derived again', host.rebuiltDifferences())
        if (index % PURGED_EVERY !== 0) return run.happened
        const purged = await host.purge(utf8(`text ${index % TEXTS.length}`), run.history)
        run.expectSame('when content is purged', purged ?? {})
        return { ...run.happened, [`purged: ${purged === undefined ? 'nothing' : 'some'}`]: 1 }
      },
    })
  },
  3_600_000,
)
