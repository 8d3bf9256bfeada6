import fc from 'fast-check'
import type { Manner } from './submission.js'

/** One thing that happens: numbers choose among what there is. */
export type Happening =
  /** What nobody has submitted yet is submitted, or anything, or what is mined in another block than the node knows of. */
  | ({ kind: 'submit'; which: 'next' | 'any' | 'moved'; at: number } & Manner)
  /** A block is mined; with `reorg`, after so many were taken back. */
  | { kind: 'mine'; reorg: number; blocks: number; choice: number }
  /** The store learns which blocks are no more. */
  | { kind: 'follow' }
  /** A proof comes that the chain no longer holds. */
  | { kind: 'stale'; at: number }
  /** A transaction processor brings the proof of something that is mined, or was. */
  | { kind: 'ingest'; at: number; stale: boolean }

const submit = fc.record({
  kind: fc.constant('submit' as const),
  which: fc.constantFrom('next' as const, 'next' as const, 'next' as const, 'any' as const, 'moved' as const),
  at: fc.nat(30),
  proven: fc.boolean(),
  sources: fc.constantFrom('none' as const, 'bare' as const, 'bare' as const, 'proven' as const),
  lag: fc.nat(5).map((chance) => chance === 0),
})
const mine = (reorg: fc.Arbitrary<number>) =>
  fc.record({
    kind: fc.constant('mine' as const),
    reorg,
    blocks: fc.integer({ min: 1, max: 2 }),
    choice: fc.nat(0x7fffffff),
  })

export const happening: fc.Arbitrary<Happening> = fc.oneof(
  { weight: 12, arbitrary: submit },
  { weight: 3, arbitrary: mine(fc.constant(0)) },
  { weight: 2, arbitrary: mine(fc.integer({ min: 1, max: 3 })) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('follow' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('stale' as const), at: fc.nat(30) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('ingest' as const),
      at: fc.nat(30),
      stale: fc.nat(5).map((chance) => chance === 0),
    }),
  },
)
