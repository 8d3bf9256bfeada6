import type { LookupFormula, LookupQuestion } from '../graph/overlay-interfaces.js'
import type { Paced, PacedStore } from './graph-reads.js'
import type { Part } from './provenance.js'

/** The reads for one answer: the host may yield between them, and aborts them when the client has left. */
export interface Reading {
  /** Wraps a store for these reads. */
  over<Store extends object>(store: Store): PacedStore<Store>
  /** Wraps a single role of one. */
  overRole<Role extends object>(role: Role): Paced<Role>
}

/** Lists everything for the BEEF of an output, or of an earlier one on the way to it if a part is asked for. */
export type ReadHistory = (reading: Reading) => Promise<Part>

/** An output of a formula, with its history if that was requested. */
export type AnsweringOutput = LookupFormula[number] & {
  /** For a host that assembles BEEF itself. */
  transactions?: ReadHistory
}

/** A lookup service, as a host asks it that assembles BEEF itself. */
export interface AnsweringService {
  /** @throws QueryError for a question of no known form. */
  lookup(question: LookupQuestion): Promise<AnsweringOutput[]>
  /** Whether an answer with so many outputs says that something does not exist, of a service about names. */
  saysAbsence?(query: unknown, found: number): Promise<boolean>
}
