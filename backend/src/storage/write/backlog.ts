import type { AdmissionOptions } from '../../graph/admission-rules.js'
import { PARTS_OF_ONE } from '../../graph/conflict-resolution.js'
import type { Outpoint } from '../../protocol/outpoint.js'
import { countParts, type TransactionView } from '../../protocol/transaction.js'
import { outpointColumns } from '../rows/columns.js'
import type { TransactionTables } from './graph-tables.js'

/**
 * What follows from one transaction may concern any number of others: those that waited for it, or that are built on what it
 * conflicts with. One write looks at so many of them, and leaves the others to the writes after it, in a table of their own
 * and in the same step. So no write takes longer than another, whatever strangers have prepared, and what is left after a
 * crash is done then. Until it is, the answers are those of a host that does not know all of it yet.
 */

/** By what is left to be done with them; txids, and outpoints of coins. */
export interface Backlog {
  /** Judged again (`admission.ts`). */
  judge: string[]
  /** Decided again whether they count (`standing.ts`). */
  decide: string[]
  /** Their unsettled outputs settled (`settle.ts`). */
  settle: string[]
  /** What they spend kept for good (`pending.ts`). */
  keep: string[]
  /** Written where they are carriers (`carriers.ts`). */
  carry: Outpoint[]
}

export type BacklogKind = keyof Backlog

/** How many transactions one write looks at beside its own, where the host says nothing else. */
const REEVALUATIONS = 1000

/** How many transactions one write looks at beside its own. */
export function reevaluationsOf(admission?: AdmissionOptions): number {
  return admission?.reevaluations ?? REEVALUATIONS
}

/** A transaction of about so many bytes takes twice as long to look at as the smallest. */
const BYTES_OF_ONE = 64 * 1024

/** What one write does beside what it has to, in transactions: a large one counts for several. */
export class Effort {
  private done = 0

  constructor(private readonly limit: number) {}

  get isOver(): boolean {
    return this.done >= this.limit
  }

  /** Counts a transaction that was looked at; without one, another that is not here. */
  add(transaction?: TransactionView): void {
    this.done++
    if (transaction === undefined) return
    const { inputs, outputs } = countParts(transaction)
    this.done += Math.floor((inputs + outputs) / PARTS_OF_ONE + transaction.raw.length / BYTES_OF_ONE)
  }
}

export function emptyBacklog(): Backlog {
  return { judge: [], decide: [], settle: [], keep: [], carry: [] }
}

/** Takes work out of the backlog: of each kind as much as one write does. */
export async function takeBacklog(tables: TransactionTables, limit: number): Promise<Backlog> {
  const take = async (kind: BacklogKind): Promise<Outpoint[]> => await tables.takeBacklog(kind, limit)
  const txidsOf = async (kind: BacklogKind): Promise<string[]> => (await take(kind)).map(({ txid }) => txid)
  return {
    judge: await txidsOf('judge'),
    decide: await txidsOf('decide'),
    settle: await txidsOf('settle'),
    keep: await txidsOf('keep'),
    carry: await take('carry'),
  }
}

/** Writes what is left for the writes after this one. */
export async function leaveBacklog(
  tables: TransactionTables,
  { carry, ...ofTransactions }: Backlog,
): Promise<void> {
  const leave = async (kind: string, outpoints: Outpoint[]): Promise<void> => {
    await tables.insertNew(
      'graph_backlog',
      outpoints.map((outpoint) => ({ kind, ...outpointColumns(outpoint) })),
    )
  }
  await leave('carry', carry)
  for (const [kind, txids] of Object.entries(ofTransactions))
    await leave(
      kind,
      txids.map((txid) => ({ txid, vout: 0 })),
    )
}
