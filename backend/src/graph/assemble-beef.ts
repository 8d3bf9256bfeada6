import { joinBytes } from '../protocol/bytes.js'
import { ancestry, unprovenParents } from './ancestry.js'
import { BeefLayout } from './beef-layout.js'
import type { TransactionSource } from './graph-store.js'
import type { TransactionRecord } from './records.js'

/**
 * Puts together the BEEF (BRC-62) of stored transactions: each once, parents before children, proven ones with
 * their merkle path, unproven ones with their ancestors down to proven ones as far as the store holds them.
 * Of one txid, its transaction stands last, where `Transaction.fromBEEF` looks for the subject.
 *
 * @returns undefined where the store does not hold one of the `txids`.
 */
export async function assembleBeef(
  txids: string[],
  store: TransactionSource,
): Promise<Uint8Array | undefined> {
  const ordered: TransactionRecord[] = []
  const seen = new Set<string>()
  for (const txid of txids) {
    if (seen.has(txid)) continue
    let last: TransactionRecord | undefined
    const visit = (record: TransactionRecord) => ({ item: record, before: unprovenParents(record) })
    const read = (each: string) => store.get(each)
    for await (const record of ancestry({ txid, read, seen, visit })) {
      ordered.push(record)
      last = record
    }
    if (last?.txid !== txid) return undefined
  }
  return encodeBeef(ordered)
}

/** A BEEF V1 of transactions that stand parents first. */
export function encodeBeef(transactions: Pick<TransactionRecord, 'raw' | 'proof'>[]): Uint8Array {
  const layout = new BeefLayout()
  const pieces = transactions.flatMap(({ raw, proof }) => [raw, layout.add(proof)])
  return joinBytes([...layout.head(), ...pieces])
}
