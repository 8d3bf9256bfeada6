import fc from 'fast-check'
import { choice } from '../../histories/happenings.js'
import { type Deed, deedOf, type Shape, weighted } from '../../histories/history.js'
import type { FollowedOrdinals } from './chain-model.js'
import type { Mining } from './chain-world.js'

/** One thing that happens while a service follows the chain; numbers choose. */
export type LiveEvent =
  | ({ kind: 'mine' } & Mining)
  /** Somebody puts a transaction into the mempool that the service is not told of. */
  | { kind: 'broadcast'; at: number }
  /** A client submits a mined transaction with its proof and without its parents, as `toBEEF()` makes it. */
  | { kind: 'submit proven'; at: number }
  /** A client submits a transaction that is not mined with its ancestors, whether it is in the mempool, new or a double spend there. */
  | { kind: 'submit unproven'; at: number }
  /** From now on a source does this with some of its answers. */
  | { kind: 'misbehave'; source: number; how: Misbehaviour; share: number; choice: number }
  /** All sources are as they should be. */
  | { kind: 'recover' }
  /** The service goes on for so many questions to its sources. */
  | { kind: 'wait'; questions: number }
  /** The service ends when it has asked so many questions, and starts again. */
  | { kind: 'kill' | 'restart'; questions: number }
  /** Everything comes to rest, and is compared with the model. */
  | { kind: 'rest'; choice: number }

export type Misbehaviour =
  | 'busy'
  | 'fails'
  | 'cuts'
  | 'stalls'
  | 'lies about spenders'
  | 'hides spenders'
  | 'lies about transactions'
  | 'lies about proofs'
  | 'forgets'

/** A history, and what happens to it. */
export interface LivePlan {
  deeds: Deed[]
  events: LiveEvent[]
  follow: FollowedOrdinals
  /** Whether the service keeps block headers of its own, and whether it reads a feed beside its sweeps. */
  ownHeaders: boolean
  feed: boolean
  /** Decides what is mined at the end. */
  rest: number
  /** Whether each route is asked about each output at the end, and not only those that tell of many at once. */
  everything: boolean
}

/** How large plans are, and how often the service is killed or restarted, beside a weight of 36 for everything else. */
export interface PlanSize {
  deeds: number
  events: number
  kills: number
}

/** Few coins of 1 satoshi that nobody has the history of, and enough of others to pay with. */
export const LIVE_SHAPE: Shape = {
  covenantVersion: 2,
  purses: [...new Array<number[]>(3).fill([...new Array<number>(12).fill(40), 4, 7, 9]), [1, 5, 5]],
}

const deed: fc.Arbitrary<Deed> = deedOf({
  kind: weighted({ mint: 4, move: 6, inscribe: 2 }),
  // One double spend takes all with it that is built on the loser: with many of them, hardly anything is left.
  from: weighted({ free: 30, spent: 2 }),
  paysFrom: weighted({ free: 40, spent: 1 }),
  paysAt: weighted({ last: 2, first: 3, nowhere: 1 }),
  carries: fc.constantFrom(true, true, true, false),
  flow: weighted({ 'goes on': 3, free: 1 }),
  unlocking: fc.constant(Number.POSITIVE_INFINITY),
  foreign: fc.constant(Number.POSITIVE_INFINITY),
  coins: { minLength: 0, maxLength: 2 },
})

const at = fc.nat(30)
const questions = fc.nat(40)

const MISBEHAVIOURS: Misbehaviour[] = [
  'busy',
  'fails',
  'cuts',
  'stalls',
  'lies about spenders',
  'hides spenders',
  'lies about transactions',
  'lies about proofs',
  'forgets',
]

const EVENTS: { weight: number; arbitrary: fc.Arbitrary<LiveEvent> }[] = [
  {
    weight: 7,
    arbitrary: fc.record({
      kind: fc.constant('mine' as const),
      reorg: fc.constantFrom(0, 0, 0, 1, 3),
      blocks: fc.integer({ min: 1, max: 2 }),
      share: fc.constantFrom(0.2, 0.5, 0.9),
      choice,
    }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('broadcast' as const), at }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('submit proven' as const), at }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('submit unproven' as const), at }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('misbehave' as const),
      source: fc.nat(2),
      how: fc.constantFrom(...MISBEHAVIOURS),
      share: fc.constantFrom(0.2, 0.5, 1),
      choice,
    }),
  },
  { weight: 2, arbitrary: fc.constant({ kind: 'recover' as const }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('wait' as const), questions }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('rest' as const), choice }) },
]

/** Plans of at most so many deeds and events, and at least half as many. */
export function livePlan({ deeds, events, kills }: PlanSize): fc.Arbitrary<LivePlan> {
  const kill = fc.record({
    kind: fc.constantFrom('kill' as const, 'kill' as const, 'restart' as const),
    questions,
  })
  const event = fc.oneof(...EVENTS, { weight: kills, arbitrary: kill })
  return fc.record({
    deeds: fc.array(deed, { minLength: Math.ceil(deeds / 2), maxLength: deeds, size: 'max' }),
    events: fc.array(event, { minLength: Math.ceil(events / 2), maxLength: events, size: 'max' }),
    follow: fc.constantFrom<FollowedOrdinals>('names', 'all'),
    ownHeaders: fc.boolean(),
    feed: fc.boolean(),
    rest: choice,
    everything: fc.nat(2).map((chance) => chance === 0),
  })
}
