import type { Lineages } from '../read/lineages.js'
import type { OutputTables } from './output-tables.js'
import type { TransactionTables } from './transaction-tables.js'

export type { Claim, Head, MovedSteps, OutputTables, PlacedOutput, Tip } from './output-tables.js'
export type { BacklogKind, PendingTotal, Spends, TransactionTables } from './transaction-tables.js'

/**
 * The statements of one write. They decide nothing: all decisions are made once, in the files beside this one, and so are the
 * same on every engine.
 */
export interface GraphTables {
  readonly transactions: TransactionTables
  readonly outputs: OutputTables
  /** The lookups of reads, with what the write has written so far. */
  readonly rows: Lineages
}
