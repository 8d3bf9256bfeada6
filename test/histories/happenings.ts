import fc from 'fast-check'
import type { Sighting } from '../../backend/src/graph/conflict-resolution.js'
import type { ProofTracker } from '../../backend/src/index/transactions.js'
import type { BlockedItem } from './answers.js'

/** How a transaction is submitted; numbers choose. */
export interface Manner {
  /** With its proof, where it is mined. */
  proven: boolean
  /** What comes along that verification does not need: of each transaction that a proven one names, with this chance. */
  sources: number
  /** Whether the sources of sources come, too. */
  deep: boolean
  /** Sources that come along bring their proofs. */
  sourceProofs: boolean
  /** What an unproven one is built on comes without proofs, mined or not. */
  lag: boolean
  topics: readonly string[]
  choice: number
}

/** One thing that happens; numbers choose among what there is. */
export type Happening =
  /**
   * A transaction is submitted: the next, or one of those, that nobody has submitted; one that the deeds made and nobody has
   * submitted; any; or one that is mined in another block than the host knows of.
   */
  | ({ kind: 'submit'; which: 'next' | 'new' | 'made' | 'any' | 'moved'; at: number } & Manner)
  /** Blocks are mined; with `reorg`, after so many were taken back. */
  | { kind: 'mine'; reorg: number; blocks: number; choice: number }
  /** Blocks that were taken back are on the chain again. */
  | { kind: 'return'; choice: number }
  /** The host looks for submissions that have become final. */
  | { kind: 'release' }
  /** The host learns which blocks are no more. */
  | { kind: 'follow' }
  /** A proof comes that the chain no longer holds. */
  | { kind: 'stale'; at: number }
  /** A transaction processor brings the proof of something that is mined, or was. */
  | { kind: 'ingest'; at: number; stale: boolean }
  /** The network says something of a transaction, submitted or not. */
  | { kind: 'sight'; at: number; status: Sighting }
  | { kind: 'block'; what: BlockedItem['kind']; at: number }
  | { kind: 'unblock'; at: number }
  /** The host ends while something is submitted. */
  | ({ kind: 'kill'; at: number } & Manner)
  | { kind: 'restart' | 'read' }
  /** A transaction processor brings a status without a path. */
  | { kind: 'callback'; at: number; status: keyof typeof STATUSES }
  /** The host starts again with a policy that takes one type of content less. */
  | { kind: 'narrow'; at: number }
  /** The host starts again with another setting of what decides which proofs count. */
  | { kind: 'tracker'; tracker: ProofTracker }
  /** The operator drops what nobody has seen. */
  | { kind: 'prune' }

/** What statuses of a transaction processor say. */
export const STATUSES: Record<string, Sighting | undefined> = {
  SEEN_ON_NETWORK: 'seen',
  MINED: 'seen',
  REJECTED: 'rejected',
  INVALID: 'rejected',
  QUEUED: undefined,
  SEEN_IN_ORPHAN_MEMPOOL: undefined,
  DOUBLE_SPEND_ATTEMPTED: undefined,
}

export const BOTH_TOPICS = ['tm_names', 'tm_ordinals']
export const choice = fc.nat(0xffff)
const at = fc.nat(30)
const rarely = fc.nat(5).map((chance) => chance === 0)

export const manner: fc.Arbitrary<Manner> = fc.record({
  proven: fc.constantFrom(true, true, true, true, true, false),
  sources: fc.constantFrom(0, 0, 0, 0.5, 1),
  deep: fc.constantFrom(false, false, true),
  sourceProofs: fc.boolean(),
  lag: fc.constantFrom(false, false, true),
  topics: fc.constantFrom(BOTH_TOPICS, BOTH_TOPICS, ['tm_names'], ['tm_ordinals']),
  choice,
})

/** Happenings of each kind, for a trial to weigh. */
export const happenings = {
  submit(which: fc.Arbitrary<'next' | 'new' | 'made' | 'any' | 'moved'>, how: fc.Arbitrary<Manner>) {
    return fc
      .record({ kind: fc.constant('submit' as const), which, at })
      .chain((some) => how.map((each) => ({ ...some, ...each })))
  },
  mine(reorg: fc.Arbitrary<number>) {
    return fc.record({
      kind: fc.constant('mine' as const),
      reorg,
      blocks: fc.integer({ min: 1, max: 2 }),
      choice,
    })
  },
  return: fc.record({ kind: fc.constant('return' as const), choice }),
  release: fc.constant({ kind: 'release' as const }),
  follow: fc.constant({ kind: 'follow' as const }),
  stale: fc.record({ kind: fc.constant('stale' as const), at }),
  ingest: fc.record({ kind: fc.constant('ingest' as const), at, stale: rarely }),
  sight: fc.record({
    kind: fc.constant('sight' as const),
    at,
    status: fc.constantFrom<Sighting>('seen', 'seen', 'rejected'),
  }),
  block: fc.record({
    kind: fc.constant('block' as const),
    what: fc.constantFrom<BlockedItem['kind']>('outpoint', 'sha256', 'name'),
    at: fc.nat(60),
  }),
  unblock: fc.record({ kind: fc.constant('unblock' as const), at: fc.nat(5) }),
  kill: at.chain((each) => manner.map((how) => ({ kind: 'kill' as const, at: each, ...how }))),
  restart: fc.constant({ kind: 'restart' as const }),
  read: fc.constant({ kind: 'read' as const }),
  callback: fc.record({
    kind: fc.constant('callback' as const),
    at,
    status: fc.constantFrom(...Object.keys(STATUSES)),
  }),
  narrow: fc.record({ kind: fc.constant('narrow' as const), at }),
  tracker: fc.record({
    kind: fc.constant('tracker' as const),
    tracker: fc.constantFrom<ProofTracker>('tracker', 'headers', 'scripts-only'),
  }),
  prune: fc.constant({ kind: 'prune' as const }),
}

/** As whatever can be valid is. */
export const CERTAIN: Manner = {
  proven: true,
  sources: 0,
  deep: false,
  sourceProofs: false,
  lag: false,
  topics: BOTH_TOPICS,
  choice: 0,
}
