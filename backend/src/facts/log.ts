/**
 * The log of facts: what cannot be computed again, in the order in which they came. Facts are inserted once and never changed (`docs/facts.md`).
 */

export const FACT = { transaction: 1, proof: 2, header: 3, body: 4, register: 5 } as const

export type FactKind = (typeof FACT)[keyof typeof FACT]

/** A fact before it has its place. */
export interface NewFact {
  kind: FactKind
  /** Unique within its kind. */
  key: Uint8Array
  body: Uint8Array
}

/** A fact in its place. */
export interface Fact extends NewFact {
  /** Its place in the log: unique, increasing, from 1. */
  seq: number
  /** When it was inserted, in milliseconds since 1970. It is shown to people and decides nothing. */
  at: number
}
