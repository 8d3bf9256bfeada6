import fc from 'fast-check'
import type { ProofTracker } from '../../backend/src/index/transactions.js'
import { NON_STRICT } from '../support/protocol/non-strict-mints.js'
import { choice, type Happening, happenings, type Manner, manner } from './happenings.js'
import { type Deed, deedOf, type Shape, weighted } from './history.js'
import type { Host } from './host.js'
import { Run } from './run.js'

// Wide histories have some of everything: double spends and what is built on both, several proofs of one transaction, branches
// that are left and come back, sightings, what is not final, unknown values, carriers, parents that are spent or only claimed,
// non-mints that spend nodes, blocks, and a policy that refuses; in any order, with some of the sources.

/** Few coins in many purses: what places an ordinal is often unknown, and much spends the same. */
export const WIDE: Shape = {
  covenantVersion: 1,
  purses: new Array<number[]>(6).fill([1, 0, 4, 7]),
  refusedTypes: ['text/css'],
}

/** Of which a page of an answer has room for few. */
const LARGE = new Set(NON_STRICT.flatMap(({ has }, at) => (has.includes('500,000 bytes') ? [at] : [])))

const deed: fc.Arbitrary<Deed> = deedOf({
  kind: weighted({ mint: 3, move: 6, inscribe: 2 }),
  from: weighted({ free: 4, spent: 1, all: 1 }),
  paysFrom: weighted({ free: 6, spent: 1 }),
  paysAt: weighted({ last: 2, first: 2, nowhere: 1 }),
  carries: fc.constantFrom(true, true, true, false),
  flow: weighted({ 'goes on': 2, free: 1 }),
  unlocking: fc.nat(6 * NON_STRICT.length).map((at) => (LARGE.has(at) ? NON_STRICT.length : at)),
  foreign: fc.nat(40),
  burns: fc.nat(9).map((chance) => chance === 0),
  lock: fc.nat(23).map((blocks) => (blocks > 6 ? 0 : blocks)),
  coins: { minLength: 1, maxLength: 3 },
})

/** Of an ordinal that lives long, and says something at nearly every step. */
const step: fc.Arbitrary<Deed> = deedOf({
  kind: weighted({ move: 6, inscribe: 1 }),
  from: weighted({ free: 8, spent: 1 }),
  paysFrom: fc.constant('free'),
  paysAt: weighted({ last: 1, nowhere: 2 }),
  carries: fc.constantFrom(true, true, true, false),
  flow: fc.constant('free'),
  unlocking: fc.constant(Number.POSITIVE_INFINITY),
  foreign: fc.constant(Number.POSITIVE_INFINITY),
  coins: { minLength: 1, maxLength: 1 },
  outputs: fc.constantFrom(
    'set',
    'add',
    'remove',
    'inscribed with MAP',
    'child',
    'child',
    'child',
    'owned inscribed',
  ),
})

/** As often without proofs as with them: what is unproven is what sightings and descendants decide about. */
const halfProven: fc.Arbitrary<Manner> = fc
  .tuple(manner, fc.boolean(), fc.boolean())
  .map(([each, proven, lag]) => ({ ...each, proven, lag }))

const happening: fc.Arbitrary<Happening> = fc.oneof(
  {
    weight: 20,
    arbitrary: happenings.submit(weighted({ next: 1, new: 2, made: 2, any: 1, moved: 2 }), halfProven),
  },
  { weight: 3, arbitrary: happenings.mine(fc.constant(0)) },
  { weight: 2, arbitrary: happenings.mine(fc.integer({ min: 1, max: 3 })) },
  { weight: 2, arbitrary: happenings.return },
  { weight: 2, arbitrary: happenings.follow },
  { weight: 2, arbitrary: happenings.release },
  { weight: 1, arbitrary: happenings.stale },
  { weight: 2, arbitrary: happenings.ingest },
  { weight: 5, arbitrary: happenings.sight },
  { weight: 3, arbitrary: happenings.block },
  { weight: 1, arbitrary: happenings.unblock },
)

export interface WidePlan {
  deeds: Deed[]
  genesisPays?: boolean
  /** Decides which transactions are mined at first. */
  mined: number
  happenings: Happening[]
  /** Decides in what order the rest is submitted, and how. */
  rest: number
}

export const wide: fc.Arbitrary<WidePlan> = fc.record({
  deeds: fc.oneof(
    { weight: 2, arbitrary: fc.array(deed, { minLength: 6, maxLength: 18, size: 'max' }) },
    { weight: 1, arbitrary: fc.array(step, { minLength: 6, maxLength: 18, size: 'max' }) },
  ),
  mined: choice,
  happenings: fc.array(happening, { minLength: 4, maxLength: 30, size: 'max' }),
  rest: choice,
})

/** What happens beside, and costs a restart. */
const more: fc.Arbitrary<{ at: number; event: Happening }> = fc.record({
  at: choice,
  event: fc.oneof(
    { weight: 3, arbitrary: happenings.callback },
    { weight: 1, arbitrary: happenings.restart },
    { weight: 1, arbitrary: happenings.narrow },
    { weight: 2, arbitrary: happenings.prune },
    { weight: 2, arbitrary: happenings.tracker },
  ),
})

/** Wide histories with what happens beside, and with content in parts: others would come of the seeds if these were among the rest. */
export const wider = (tracker: ProofTracker): fc.Arbitrary<WidePlan> =>
  fc.tuple(wide, fc.array(more, { maxLength: 4 })).map(([plan, beside]) => {
    const all = [...plan.happenings]
    for (const { at, event } of beside) all.splice(at % (all.length + 1), 0, event)
    const inParts = ({ kind, text, ...output }: Deed['outputs'][number]): Deed['outputs'][number] =>
      kind === 'inscribed' && text === 2
        ? { kind: 'inscribed in parts', text, ...output }
        : { kind, text, ...output }
    // Where scripts decide, no block proves a spend of a node that is not strict, and none says what is final.
    const isTrusting = [{ kind: 'tracker', tracker }, ...all].some(
      (each) => 'tracker' in each && each.tracker === 'scripts-only',
    )
    const simple = isTrusting ? { lock: 0, burns: false, unlocking: NON_STRICT.length } : {}
    const deeds = plan.deeds.map((each) => ({ ...each, ...simple, outputs: each.outputs.map(inParts) }))
    return { ...plan, deeds, genesisPays: true, happenings: all }
  })

/** What happens in 500 wide histories. */
export const HAPPENS_WIDE = [
  ...['reorg', 'return', 'stale', 'branch reorganised', 'block', 'unblock', 'release: some'],
  ...['submit: lost', 'submit: taken', 'submit: taken, proven', 'submit: held', 'submit: waits'],
  ...['ingest: known', 'ingest: unknown', 'ingest: known, stale'],
  ...['sight: seen, and counts', 'sight: rejected, and counts no more'],
  ...['late: a name', 'late: an origin', 'late: an ordinal, by its parent', 'late: an ordinal, by a value'],
]

export const HAPPENS_WIDER = [
  ...['callback: seen', 'callback: rejected', 'callback: neither', 'restart', 'narrow', 'prune: some'],
  ...['tracker: tracker', 'tracker: headers', 'tracker: scripts-only'],
]

/** Starts a host for a wide history, of which some is mined. */
export async function startWide<At extends Host>(
  { deeds, genesisPays = false, mined }: Pick<WidePlan, 'deeds' | 'genesisPays' | 'mined'>,
  open: Parameters<typeof Run.start<At>>[0]['open'],
): Promise<Run<At>> {
  const shape = { ...WIDE, genesisPays }
  return await Run.start({ deeds, shape, mined: { blocks: 4, share: 0.3, choice: mined }, open })
}

/** Does to a host what a plan says, and submits the rest. Stops before something of which the model does not know the outcome. */
export async function runWide<At extends Host>(
  plan: WidePlan,
  open: Parameters<typeof Run.start<At>>[0]['open'],
): Promise<Run<At>> {
  const { rest } = plan
  const run = await startWide(plan, open)
  for (const each of plan.happenings) {
    await run.happen(each)
    if (run.mayTie) return run
  }
  await run.follow()
  await run.submitRest(rest)
  await run.happen({ kind: 'mine', reorg: 0, blocks: 4, choice: rest })
  await run.happen({ kind: 'release' })
  return run
}
