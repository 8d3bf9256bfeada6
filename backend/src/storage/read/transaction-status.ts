import {
  type ConflictView,
  reasonAgainst,
  type Sighting,
  type Tier,
  type TransactionStatus,
  tierOf,
} from '../../graph/conflict-resolution.js'
import type { Reason } from '../../graph/errors.js'
import type { SpendRecord } from '../../graph/records.js'
import { formatOutpoint, type Outpoint } from '../../protocol/outpoint.js'
import { hashColumn, hexOf, inParts, numberIn, type OutpointRow, outpointOf, parts } from '../rows/columns.js'
import { anyOf, anyOutpoint, type Filter, type RowReader, SPENDS, type Table } from '../rows/rows.js'
import type { Lookups } from './lookups.js'
import { heldChunks } from './read-blobs.js'

/** The lookups behind a decision about conflicts. */
export interface ConflictLookups {
  lookups: Pick<Lookups, 'sharedWith'>
  /** Whether the store derives the admissions of all stored transactions. */
  derives: boolean
}

/** For one decision. @param judged Transactions that this write has judged. */
export function conflictView(
  rows: RowReader,
  { lookups, derives }: ConflictLookups,
  judged: ReadonlySet<string> = new Set(),
): ConflictView {
  const isThere = async (table: Table, filter: Filter): Promise<boolean> =>
    (await rows.first(table, filter, { fields: ['txid'] })) !== undefined
  return {
    statuses: (wanted) => statuses(rows, wanted),
    async parents(txid) {
      const spends = await rows.all(SPENDS, { spender: hashColumn(txid) }, { fields: ['txid'] })
      return [...new Set(spends.map((spend) => hexOf(spend.txid)))]
    },
    children: (txid) => childrenOf(rows, [txid]),
    conflicts: conflictsIn(
      {
        sharedWith: (txid) => lookups.sharedWith(txid),
        hasNode: async (txid) =>
          (await isThere('graph_nodes', { txid: hashColumn(txid) })) ||
          (await isThere('graph_silent_facts', { txid: hashColumn(txid), kind: 'node' })),
        async wasJudged(txid) {
          if (derives) return (await heldChunks(rows, [txid])).has(txid)
          for (const table of ['graph_outputs', 'graph_names', 'graph_silent_facts'] as const)
            if (await isThere(table, { txid: hashColumn(txid) })) return true
          return false
        },
      },
      judged,
    ),
    async outputs(txid) {
      const own = { txid: hashColumn(txid) }
      return (await rows.count('graph_outputs', own)) + (await rows.count('graph_silent_facts', own))
    },
  }
}

/** The lookups behind {@link conflictsIn}. They include the rows of inactive transactions. */
interface ConflictRows extends Pick<Lookups, 'sharedWith'> {
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
function conflictsIn(rows: ConflictRows, judged: ReadonlySet<string>): (txid: string) => Promise<string[]> {
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
async function conflictsAmong(
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

export async function statuses(rows: RowReader, txids: string[]): Promise<TransactionStatus[]> {
  const fields = ['txid', 'mined', 'seen', 'rejected', 'arrival', 'silent']
  const found = await inParts([...new Set(txids)], (part) =>
    rows.all('graph_transactions', { txid: anyOf(part) }, { fields }),
  )
  return found.map(({ txid, mined, seen, rejected, arrival, silent }) => ({
    txid: hexOf(txid),
    mined: numberIn(mined),
    seen: numberIn(mined) !== undefined || Number(seen) === 1,
    rejected: Number(rejected) === 1,
    insertionOrder: Number(arrival),
    isInactive: Number(silent) === 1,
  }))
}

/** Those of the transactions that are proven or seen. */
export async function seenAmong(rows: RowReader, txids: string[]): Promise<Set<string>> {
  const found = await statuses(rows, txids)
  return new Set(found.filter(({ seen }) => seen).map(({ txid }) => txid))
}

/** The transactions that spend from these. */
export async function childrenOf(rows: RowReader, txids: string[]): Promise<string[]> {
  const spends = await inParts(txids, (part) =>
    rows.all(SPENDS, { txid: anyOf(part) }, { fields: ['spender'] }),
  )
  return [...new Set(spends.map(({ spender }) => hexOf(spender)))]
}

/** The other transactions that spend the same outpoints. */
export async function conflictsOf(rows: RowReader, spends: SpendRecord[]): Promise<string[]> {
  return await conflictsAmong(spends, (outpoints) => spendsOf(rows, outpoints))
}

export async function spendsOf(rows: RowReader, outpoints: Outpoint[]): Promise<SpendRecord[]> {
  const fields = ['txid', 'vout', 'spender']
  return (await inParts(outpoints, (part) => rows.all(SPENDS, anyOutpoint(part), { fields }))).map(spendOf)
}

/** A spend, with its value if that was read and is known. */
export function spendOf(row: OutpointRow & { spender: unknown; satoshis?: unknown }): SpendRecord {
  const satoshis = numberIn(row.satoshis)
  return {
    outpoint: outpointOf(row),
    spender: hexOf(row.spender),
    ...(satoshis !== undefined && { satoshis }),
  }
}

/** See `TransactionsReader.reasonAgainst`. */
export async function reasonIn(
  rows: RowReader,
  conflicts: ConflictLookups,
  txid: string,
): Promise<Reason | undefined> {
  const found = await reasonAgainst(txid, conflictView(rows, conflicts))
  if (found === undefined) return undefined
  return { txid: found.txid, tier: found.isInactive ? 'rejected' : tierOf(found) }
}

/** See `TransactionsReader.tiers`. */
export async function tiersIn(rows: RowReader, txids: string[]): Promise<Map<string, Tier>> {
  return new Map((await statuses(rows, txids)).map((status) => [status.txid, tierOf(status)]))
}

/** See `SightingsStore.of`. */
export async function sightingsIn(rows: RowReader, txids: string[]): Promise<Map<string, Sighting>> {
  const found = await inParts([...new Set(txids)], (part) =>
    rows.all('graph_sightings', { txid: anyOf(part) }, { fields: ['txid', 'seen'] }),
  )
  return new Map(found.map(({ txid, seen }) => [hexOf(txid), Number(seen) === 1 ? 'seen' : 'rejected']))
}

/** See `TransactionsReader.heightOf`. */
export async function heightOf(rows: RowReader, txid: string): Promise<number | undefined> {
  const row = await rows.first('graph_transactions', { txid: hashColumn(txid) }, { fields: ['height'] })
  return numberIn(row?.height)
}
