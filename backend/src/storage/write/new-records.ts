import type { Decision, Standing } from '../../graph/conflict-resolution.js'
import type { GraphRecords, SpendRecord, TransactionRecord } from '../../graph/records.js'
import { formatOutpoint } from '../../protocol/outpoint.js'

/** What is to be found out of what is told before it is written; the same whatever it is written to. */

/** What of that is news. */
export interface NewRecords {
  /** Transactions whose bytes are not here. */
  fresh: TransactionRecord[]
  /** What these spend; and spends that come without the bytes of what makes them. */
  spends: SpendRecord[]
  /** Transactions whose bytes are here, with a proof that is not. */
  proven: TransactionRecord[]
}

/** What a store is asked for that sorts out what is news. */
export interface NewRecordsView {
  /** Those of the transactions whose bytes are held. */
  held(txids: string[]): Promise<Set<string>>
  /** The blocks that kept proofs of transactions lead to, as {@link blockText}, by txid. */
  blocks(txids: string[]): Promise<Map<string, string>>
}

export function blockText({ height, root }: { height: number; root: string }): string {
  return `${height} ${root}`
}

/** Sorts out what is news of what is told. */
export async function newRecordsOf(
  view: NewRecordsView,
  told: { transactions: TransactionRecord[]; spends: SpendRecord[]; again: boolean },
): Promise<NewRecords> {
  const { transactions, spends, again } = told
  const byTxid = new Map<string, TransactionRecord>()
  for (const transaction of transactions) {
    const { txid, proof } = transaction
    if (proof !== undefined || !byTxid.has(txid)) byTxid.set(txid, transaction)
  }
  const held = await view.held([...byTxid.keys()])
  const all = [...byTxid.values()]
  const proofs = all.filter(({ txid, proof }) => proof !== undefined && held.has(txid))
  const kept = await view.blocks(proofs.map(({ txid }) => txid))
  return {
    fresh: all.filter(({ txid }) => !held.has(txid)),
    spends: again ? spends : spends.filter(({ spender }) => !held.has(spender)),
    proven: proofs.filter(({ txid, proof }) => proof && kept.get(txid) !== blockText(proof)),
  }
}

/** What each of the spenders spends of. */
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
 * The heights at which new transactions are mined, by their own proofs and by those of what comes with them and is built
 * on them; undefined where one of them is built on what is known and silent, or not known to be mined by then.
 */
export async function minedOf(
  fresh: TransactionRecord[],
  parents: Map<string, string[]>,
  statusesOf: (txids: string[]) => Promise<Standing[]>,
): Promise<Map<string, number> | undefined> {
  const own = new Set(fresh.map(({ txid }) => txid))
  const others = new Set<string>()
  for (const txids of parents.values()) for (const txid of txids) if (!own.has(txid)) others.add(txid)
  const known = new Map<string, Standing>()
  for (const standing of await statusesOf([...others])) {
    if (standing.silent) return undefined
    known.set(standing.txid, standing)
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
 * How far one telling is from the next in the order of arrival: a parent that comes late has its place before its child, and
 * after all that came before that.
 */
const A_TELLING = 2 ** 20

/** The first arrival of a telling. @param last The last that is known. */
export function nextInsertion(last: number): number {
  return (Math.floor(last / A_TELLING) + 1) * A_TELLING
}

/** How many transactions answered before a decision and do not now, or the other way round. */
export function statusChanges(
  { deactivated, restored }: Decision,
  { transactions }: Pick<GraphRecords, 'transactions'>,
): number {
  const told = new Set(transactions.map(({ txid }) => txid))
  return restored.length + deactivated.filter((txid) => !told.has(txid)).length
}
