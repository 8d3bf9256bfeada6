import type { AdmissionOptions } from '../../graph/admission-rules.js'
import { PARTS_OF_ONE } from '../../graph/conflict-resolution.js'
import type { Outpoint } from '../../protocol/outpoint.js'
import { countParts, type TransactionView } from '../../protocol/transaction.js'
import { outpointColumns } from '../rows/columns.js'
import type { BacklogKind, TransactionTables } from './graph-tables.js'

/**
 * One transaction may affect any number of others: those that waited for it, or that are built on what it conflicts with.
 * A write looks at a bounded number of them and leaves the others to later writes, in a table that it writes atomically with
 * everything else. So the time of a write is bounded whatever strangers have prepared, and the work survives a crash. Until
 * it is done, reads answer as a host that does not know all of it yet.
 */

/** Transactions (txids) and coins, by what is left to do with them. */
export interface BacklogItems {
  /** Derive their admissions (`derive-admissions.ts`). */
  judge: string[]
  /** Resolve their conflicts (`graph/conflict-resolution.ts`). */
  decide: string[]
  /** Resolve the predecessors of their outputs (`link-lineages.ts`). */
  resolve: string[]
  /** Keep what they spend for good (`pending.ts`). */
  keep: string[]
  /** Decide whether the parents that their outputs name count (`index-ordinals.ts`). */
  claim: string[]
  /** Write them if they are carriers (`link-lineages.ts`). */
  carry: Outpoint[]
  /** Link them with the coins that they received (`link-lineages.ts`). */
  link: Outpoint[]
}

/** The kinds as the table has them. */
const KINDS: Record<keyof BacklogItems, BacklogKind> = {
  judge: 'judge',
  decide: 'decide',
  resolve: 'settle',
  keep: 'keep',
  claim: 'claim',
  carry: 'carry',
  link: 'link',
}

/** The default for how many transactions one write looks at beside its own. */
const REEVALUATIONS = 1000

/** How many transactions one write looks at beside its own. */
export function reevaluationsOf(admission?: AdmissionOptions): number {
  return admission?.reevaluations ?? REEVALUATIONS
}

/** A transaction of about this many bytes takes twice as long to look at as the smallest. */
const BYTES_OF_ONE = 64 * 1024

/** Limits the extra work of one write, in transactions: a large one counts for several. */
export class Effort {
  private done = 0

  constructor(private readonly limit: number) {}

  get isOver(): boolean {
    return this.done >= this.limit
  }

  /** Counts a transaction that was looked at; undefined for one that is not stored. */
  add(transaction?: TransactionView): void {
    this.done++
    if (transaction === undefined) return
    const { inputs, outputs } = countParts(transaction)
    this.done += Math.floor((inputs + outputs) / PARTS_OF_ONE + transaction.raw.length / BYTES_OF_ONE)
  }
}

export function emptyBacklog(): BacklogItems {
  return { judge: [], decide: [], resolve: [], keep: [], claim: [], carry: [], link: [] }
}

/** Takes items out of the backlog: up to `limit` of each kind. */
export async function takeBacklog(tables: TransactionTables, limit: number): Promise<BacklogItems> {
  const txidsOf = async (kind: keyof BacklogItems): Promise<string[]> =>
    (await tables.takeBacklog(KINDS[kind], limit)).map(({ txid }) => txid)
  return {
    judge: await txidsOf('judge'),
    decide: await txidsOf('decide'),
    resolve: await txidsOf('resolve'),
    keep: await txidsOf('keep'),
    claim: await txidsOf('claim'),
    carry: await tables.takeBacklog(KINDS.carry, limit),
    link: await tables.takeBacklog(KINDS.link, limit),
  }
}

/** Adds items to the backlog. */
export async function leaveBacklog(tables: TransactionTables, items: BacklogItems): Promise<void> {
  for (const [name, kind] of Object.entries(KINDS)) {
    const rows = items[name as keyof BacklogItems].map((item) => ({
      kind,
      ...outpointColumns(typeof item === 'string' ? { txid: item, vout: 0 } : item),
    }))
    await tables.insertNew('graph_backlog', rows)
  }
}
