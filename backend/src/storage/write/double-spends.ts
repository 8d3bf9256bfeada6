import type { SpendRecord } from '../../graph/records.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import { parts } from '../rows/columns.js'

/** The lookups behind {@link conflictsIn}. They include the rows of inactive transactions. */
export interface ConflictRows {
  /**
   * The other transactions that spend the same outpoints: each once for nodes and once for other coins. Two transactions may
   * share thousands of outpoints.
   */
  sharedWith(txid: string): Promise<{ spender: string; isNode: boolean }[]>
  /** Whether a transaction has a node among its outputs. */
  hasNode(txid: string): Promise<boolean>
  /** Whether the topics have judged a transaction. */
  wasJudged(txid: string): Promise<boolean>
}

/**
 * Answers `ConflictView.conflicts`. Use one per decision: it caches what it learns about nodes.
 *
 * @param judged Transactions that this write has judged.
 */
export function conflictsIn(
  rows: ConflictRows,
  judged: ReadonlySet<string>,
): (txid: string) => Promise<string[]> {
  const mints = new PossibleMints(rows, judged)
  return async (txid) => {
    const found = new Set<string>()
    for (const { spender, isNode } of await rows.sharedWith(txid)) {
      if (found.has(spender)) continue
      // Over a node, only mints conflict.
      if (!isNode || ((await mints.includes(txid)) && (await mints.includes(spender)))) found.add(spender)
    }
    return [...found]
  }
}

/** Which transactions may be mints. Cached, as a coin may have any number of spenders. */
class PossibleMints {
  private readonly known = new Map<string, boolean>()

  constructor(
    private readonly rows: ConflictRows,
    private readonly judged: ReadonlySet<string>,
  ) {}

  async includes(txid: string): Promise<boolean> {
    const known = this.known.get(txid)
    if (known !== undefined) return known
    const mayMint =
      (await this.rows.hasNode(txid)) ||
      // One that is stored only because others need it may still turn out to be a mint.
      (!this.judged.has(txid) && !(await this.rows.wasJudged(txid)))
    this.known.set(txid, mayMint)
    return mayMint
  }
}

/**
 * The other transactions that spend these outpoints.
 *
 * @param spendsOf Finds all spends of outpoints, of inactive transactions too.
 */
export async function conflictsAmong(
  spends: SpendRecord[],
  spendsOf: (outpoints: Outpoint[]) => Promise<SpendRecord[]>,
): Promise<string[]> {
  // The one spender of each outpoint, or SEVERAL: a set for each would take most of the memory.
  const spenders = new Map<string, string | typeof SEVERAL>()
  const outpoints: Outpoint[] = []
  for (const { outpoint, spender } of spends) {
    const key = formatOutpoint(outpoint)
    const known = spenders.get(key)
    if (known === undefined) outpoints.push(outpoint)
    if (known !== spender) spenders.set(key, known === undefined ? spender : SEVERAL)
  }
  const others = new Set<string>()
  for (const part of parts(outpoints, A_PART))
    for (const { outpoint, spender } of await spendsOf(part))
      if (spenders.get(formatOutpoint(outpoint)) !== spender) others.add(spender)
  return [...others]
}

const SEVERAL = Symbol('several')
/** How many outpoints are looked up at once: a transaction may spend any number. */
const A_PART = 1000
