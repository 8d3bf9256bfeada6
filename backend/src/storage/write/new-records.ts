import type { TransactionStatus } from '../../graph/conflict-resolution.js'
import type { SpendRecord, TransactionRecord } from '../../graph/records.js'
import { formatOutpoint } from '../../protocol/outpoint.js'

/** What is new among the records passed to a write. */
export interface NewRecords {
  /** Transactions whose bytes are not stored. */
  fresh: TransactionRecord[]
  /** Their spends, and spends that come without the bytes of the spender. */
  spends: SpendRecord[]
  /** Stored transactions that come with a proof that is not stored. */
  proven: TransactionRecord[]
}

/** The lookups that tell which records are new. */
export interface NewRecordsView {
  /** Those of the transactions whose bytes are stored. */
  held(txids: string[]): Promise<Set<string>>
  /** The blocks that stored proofs lead to, as {@link blockText}, by txid. */
  blocks(txids: string[]): Promise<Map<string, string>>
}

export function blockText({ height, root }: { height: number; root: string }): string {
  return `${height} ${root}`
}

/** @param records.again Whether the spends of stored transactions count as new. */
export async function newRecordsOf(
  view: NewRecordsView,
  records: { transactions: TransactionRecord[]; spends: SpendRecord[]; again: boolean },
): Promise<NewRecords> {
  const { transactions, spends, again } = records
  const byTxid = new Map<string, TransactionRecord>()
  for (const transaction of transactions) {
    const { txid, proof } = transaction
    if (proof !== undefined || !byTxid.has(txid)) byTxid.set(txid, transaction)
  }
  const held = await view.held([...byTxid.keys()])
  const all = [...byTxid.values()]
  const proofs = all.filter(({ txid, proof }) => proof !== undefined && held.has(txid))
  const stored = await view.blocks(proofs.map(({ txid }) => txid))
  return {
    fresh: all.filter(({ txid }) => !held.has(txid)),
    spends: again ? spends : spends.filter(({ spender }) => !held.has(spender)),
    proven: proofs.filter(({ txid, proof }) => proof && stored.get(txid) !== blockText(proof)),
  }
}

/** The parents of each spender, by txid. */
export function parentsIn(spends: SpendRecord[]): Map<string, string[]> {
  const parents = new Map<string, string[]>()
  for (const { outpoint, spender } of spends) {
    const known = parents.get(spender)
    if (known === undefined) parents.set(spender, [outpoint.txid])
    else known.push(outpoint.txid)
  }
  return parents
}

/**
 * The heights at which new transactions are mined, by their own proofs and those of new descendants. Undefined if one of
 * them spends from a stored transaction that is inactive, or not known to be mined at that height.
 */
export async function minedHeights(
  fresh: TransactionRecord[],
  parents: Map<string, string[]>,
  statusesOf: (txids: string[]) => Promise<TransactionStatus[]>,
): Promise<Map<string, number> | undefined> {
  const own = new Set(fresh.map(({ txid }) => txid))
  const others = new Set<string>()
  for (const txids of parents.values()) for (const txid of txids) if (!own.has(txid)) others.add(txid)
  const known = new Map<string, TransactionStatus>()
  for (const status of await statusesOf([...others])) {
    if (status.isInactive) return undefined
    known.set(status.txid, status)
  }
  const mined = new Map<string, number>()
  const waiting = fresh.flatMap(({ txid, proof }) => (proof ? [{ txid, height: proof.height }] : []))
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { txid, height } = next
    if (height >= (mined.get(txid) ?? known.get(txid)?.mined ?? Number.POSITIVE_INFINITY)) continue
    if (known.has(txid)) return undefined
    if (!own.has(txid)) continue
    mined.set(txid, height)
    for (const parent of new Set(parents.get(txid)))
      if (own.has(parent) || known.has(parent)) waiting.push({ txid: parent, height })
  }
  return mined
}

/** Whether two of the spends are a double spend. */
export function isSpentTwice(spends: SpendRecord[]): boolean {
  const spender = new Map<string, string>()
  return spends.some(({ outpoint, spender: txid }) => {
    const key = formatOutpoint(outpoint)
    const other = spender.get(key)
    spender.set(key, txid)
    return other !== undefined && other !== txid
  })
}

/**
 * The gap in insertion order between two writes: a parent that comes later than its child is placed before that child, and
 * after everything of earlier writes.
 */
const WRITE_GAP = 2 ** 20

/** The first place of a new write. @param last The last place that is taken. */
export function nextInsertionOrder(last: number): number {
  return (Math.floor(last / WRITE_GAP) + 1) * WRITE_GAP
}
