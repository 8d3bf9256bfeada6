import type { LookupFormula, LookupQuestion } from '../graph/overlay-interfaces.js'
import type { Pace, Part } from './provenance.js'

/** Lists all transactions for the BEEF of an output, or of an earlier one on the way to it if a part is requested. */
export type ReadHistory = (pace: Pace | undefined) => Promise<Part>

/** An output of a formula, with its history if that was requested. */
export type AnsweringOutput = LookupFormula[number] & {
  /** For a host that assembles BEEF itself. */
  transactions?: ReadHistory
}

/** A lookup service for a host that assembles BEEF itself. */
export interface AnsweringService {
  /** @throws QueryError for a question of no known form. */
  lookup(question: LookupQuestion): Promise<AnsweringOutput[]>
  /** For a service of names: whether an answer with this many outputs says that something does not exist. */
  saysAbsence?(query: unknown, found: number): Promise<boolean>
}
