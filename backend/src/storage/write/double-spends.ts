import type { SpendRecord } from '../../graph/records.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import { parts } from '../rows/columns.js'

/** What is asked of a database for {@link conflictsIn}. What silent transactions say and spend is asked for, too. */
export interface ConflictRows {
  /**
   * What else spends an outpoint that a transaction spends: each spender once for nodes, and once for
   * other coins. Two may share thousands of outpoints.
   */
  sharedWith(txid: string): Promise<{ spender: string; isNode: boolean }[]>
  /** Whether an output of a transaction is a node. */
  leftNode(txid: string): Promise<boolean>
  /** Whether anything is said of the outputs of a transaction. */
  wasLookedAt(txid: string): Promise<boolean>
}

/**
 * Answers `ConflictView.rivals`; for one decision, as what was asked about nodes is not asked again.
 *
 * @param told Transactions of which outputs are told, and about to be written.
 */
export function conflictsIn(
  rows: ConflictRows,
  told: ReadonlySet<string>,
): (txid: string) => Promise<string[]> {
  const known = new Known(rows, told)
  return async (txid) => {
    const found = new Set<string>()
    for (const { spender, isNode } of await rows.sharedWith(txid)) {
      if (found.has(spender)) continue
      const isRival = !isNode || ((await known.maySpendNodes(txid)) && (await known.maySpendNodes(spender)))
      if (isRival) found.add(spender)
    }
    return [...found]
  }
}

/** What may spend a node: asked once for each, as a coin may have any number of spenders. */
class Known {
  private readonly spenders = new Map<string, boolean>()

  constructor(
    private readonly rows: ConflictRows,
    private readonly told: ReadonlySet<string>,
  ) {}

  async maySpendNodes(spender: string): Promise<boolean> {
    const known = this.spenders.get(spender)
    if (known !== undefined) return known
    const may =
      (await this.rows.leftNode(spender)) ||
      // What is held for the sake of others alone may be a mint, for all that is known.
      (!this.told.has(spender) && !(await this.rows.wasLookedAt(spender)))
    this.spenders.set(spender, may)
    return may
  }
}

/**
 * Whatever else spends one of these outpoints.
 *
 * @param spendsOf Finds whatever spends outpoints, silent or not.
 */
export async function conflictsAmong(
  told: SpendRecord[],
  spendsOf: (outpoints: Outpoint[]) => Promise<SpendRecord[]>,
): Promise<string[]> {
  // The one spender that is told of each outpoint, or that there are several: a set for each would be most of the memory.
  const spenders = new Map<string, string | typeof SEVERAL>()
  const outpoints: Outpoint[] = []
  for (const { outpoint, spender } of told) {
    const key = formatOutpoint(outpoint)
    const known = spenders.get(key)
    if (known === undefined) outpoints.push(outpoint)
    if (known !== spender) spenders.set(key, known === undefined ? spender : SEVERAL)
  }
  const rivals = new Set<string>()
  for (const part of parts(outpoints, A_PART))
    for (const { outpoint, spender } of await spendsOf(part))
      if (spenders.get(formatOutpoint(outpoint)) !== spender) rivals.add(spender)
  return [...rivals]
}

const SEVERAL = Symbol('several')
/** How many outpoints are asked about at once: a transaction spends as many as fit into it. */
const A_PART = 1000
