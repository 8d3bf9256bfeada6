import fc from 'fast-check'
import type { ChainRoots } from './chain-roots.js'
import { BOTH_TOPICS, choice, type Happening, happenings, type Manner } from './happenings.js'
import { type Deed, deedOf, type Shape, weighted } from './history.js'
import type { Host } from './host.js'
import { Run } from './run.js'

// Forests: many transactions spend what others spend, and are submitted with all their sources to both topics while the chain
// is reorganised and the host hears of it late.

/** More in a coin than any transaction here gives out, so that all of them are paid. */
const PAY = 1000

export const FOREST: Shape = {
  covenantVersion: 2,
  purses: [[...new Array<number>(30).fill(PAY), 1, 1, 1, 0]],
}

const deed: fc.Arbitrary<Deed> = deedOf({
  kind: weighted({ mint: 2, move: 3, inscribe: 1 }),
  from: weighted({ free: 2, spent: 1, all: 1 }),
  paysFrom: weighted({ free: 4, spent: 1 }),
  paysAt: fc.constant('last'),
  carries: fc.constant(false),
  flow: fc.constant('free'),
  unlocking: fc.constant(Number.POSITIVE_INFINITY),
  foreign: fc.constant(Number.POSITIVE_INFINITY),
  coins: { minLength: 0, maxLength: 3 },
})

const manner: fc.Arbitrary<Manner> = fc.record({
  proven: fc.boolean(),
  sources: fc.constantFrom(0, 1, 1, 1),
  deep: fc.constant(false),
  sourceProofs: fc.constantFrom(false, false, true),
  lag: fc.nat(5).map((chance) => chance === 0),
  topics: fc.constant(BOTH_TOPICS),
  choice,
})

const happening: fc.Arbitrary<Happening> = fc.oneof(
  { weight: 12, arbitrary: happenings.submit(weighted({ made: 3, any: 1, moved: 1 }), manner) },
  { weight: 3, arbitrary: happenings.mine(fc.constant(0)) },
  { weight: 2, arbitrary: happenings.mine(fc.integer({ min: 1, max: 3 })) },
  { weight: 2, arbitrary: happenings.follow },
  { weight: 1, arbitrary: happenings.stale },
  { weight: 2, arbitrary: happenings.ingest },
  { weight: 3, arbitrary: happenings.sight },
)

export interface ForestPlan {
  deeds: Deed[]
  happenings: Happening[]
}

export const forest: fc.Arbitrary<ForestPlan> = fc.record({
  deeds: fc.array(deed, { minLength: 3, maxLength: 14 }),
  happenings: fc.array(
    fc.oneof({ weight: 12, arbitrary: happening }, { weight: 1, arbitrary: happenings.read }),
    { minLength: 5, maxLength: 25 },
  ),
})

/** Grows a forest on a host that is emptied for it. */
export async function growForest<At extends Host & { clear(chain: ChainRoots): Promise<void> }>(
  plan: ForestPlan,
  host: At,
): Promise<Run<At>> {
  const run = await Run.start({
    deeds: plan.deeds,
    shape: FOREST,
    async open({ headers }) {
      await host.clear(headers)
      return host
    },
  })
  await run.submitGenesis()
  for (const each of plan.happenings) await run.happen(each)
  await run.follow()
  return run
}
