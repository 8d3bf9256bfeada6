import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import fc from 'fast-check'
import { IS_NIGHTLY } from '../../support/nightly.js'
import { NON_STRICT } from '../../support/protocol/non-strict-mints.js'
import { choice, type Happening, happenings, manner } from '../happenings.js'
import { type Deed, deedOf, type Shape, weighted } from '../history.js'
import { Run } from '../run.js'
import { ServerHost } from '../server-host.js'
import { expectRuns, IS_LONG } from '../trial.js'

// The index is a pure function of what is known (`docs/spec/overlay.md`, Submissions): most of a history is mined, and it
// is submitted in random order, each transaction with some of its sources, to a server that is restarted and killed, and loses its
// index. `npm run orders` does thousands of runs.

/** The compiled command, which `npm run orders` builds. */
const MAIN = resolve(import.meta.dirname, '../../../dist/cli/main.js')
/** One run of so many has a server in a process of its own, which is killed; the others restart one in this process. */
const PROCESS_EVERY = 25
/** In one run of so many, each route is asked about each output at the end; in the others, those that tell of many at once. */
const EVERYTHING_EVERY = 3

/** Many purses with few coins each, so that what places an ordinal is often not known yet. */
const SHAPE: Shape = { covenantVersion: 1, purses: new Array<number[]>(8).fill([1, 0, 4, 7]) }

const deed: fc.Arbitrary<Deed> = deedOf({
  kind: weighted({ mint: 2, move: 6, inscribe: 2 }),
  from: weighted({ free: 14, spent: 1, all: 1 }),
  paysFrom: weighted({ free: 14, spent: 1 }),
  paysAt: weighted({ last: 1, first: 3, nowhere: 1 }),
  carries: fc.constantFrom(true, true, true, false),
  flow: weighted({ 'goes on': 3, free: 1 }),
  unlocking: fc.nat(3 * NON_STRICT.length),
  foreign: fc.nat(40),
  coins: { minLength: 1, maxLength: 3 },
})

const happening: fc.Arbitrary<Happening> = fc.oneof(
  { weight: 16, arbitrary: happenings.submit(weighted({ next: 1, new: 2, any: 1 }), manner) },
  { weight: 2, arbitrary: happenings.ingest },
  { weight: 2, arbitrary: happenings.sight },
  { weight: 1, arbitrary: happenings.block },
  { weight: 1, arbitrary: happenings.unblock },
  { weight: 1, arbitrary: happenings.mine(fc.integer({ min: 1, max: 5 })) },
  { weight: 1, arbitrary: happenings.restart },
  { weight: 1, arbitrary: happenings.kill },
  { weight: 1, arbitrary: happenings.read },
)

const plan = fc.record({
  deeds: fc.array(deed, { minLength: 8, maxLength: 20, size: 'max' }),
  /** Decides which transactions are mined. */
  mined: choice,
  happenings: fc.array(happening, { minLength: 2, maxLength: 28, size: 'max' }),
  /** Decides in what order the rest is submitted, and how. */
  rest: choice,
})

test('whatever comes in whatever order, every answer is that of all that is known', async () => {
  await expectRuns({
    plan,
    runs: IS_NIGHTLY ? 200 : 4,
    least: [
      'submit: lost',
      'ingest: known',
      'ingest: unknown',
      'block',
      'unblock',
      'reorg',
      'restart',
      'kill',
    ],
    async run({ deeds, mined, happenings: all, rest }) {
      const main = IS_LONG && rest % PROCESS_EVERY === 0 && existsSync(MAIN) ? MAIN : undefined
      const run = await Run.start({
        ...{ deeds, shape: SHAPE },
        mined: { blocks: 10, share: 0.3, choice: mined },
        open: (history) => ServerHost.start({ ...history, main }),
      })
      try {
        for (const each of all) {
          await run.happen(each)
          if (each.kind !== 'mine') continue
          await run.follow()
          if (run.mayTie) return run.happened
        }
        await run.submitRest(rest)
        await run.read('when everything was submitted', { everything: rest % EVERYTHING_EVERY === 0 })
        await run.host.rebuild()
        await run.read('when the index was derived again', { everything: false })
      } finally {
        await run.host.close()
      }
      return { ...run.happened, ...(main !== undefined && { 'runs of processes': 1 }) }
    },
  })
}, 14_400_000)
