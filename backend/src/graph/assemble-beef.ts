import { BEEF_V1, Beef, MerklePath, Utils } from '@bsv/sdk'
import { ancestry, unprovenParents } from './ancestry.js'
import type { TransactionReader } from './graph-store.js'
import type { Proof, TransactionRecord } from './records.js'

/**
 * Puts together the BEEF (BRC-62) of stored transactions: each once, parents before children, proven ones with
 * their merkle path, unproven ones with their ancestors down to proven ones as far as the store holds them.
 * Of one txid, its transaction stands last, where `Transaction.fromBEEF` looks for the subject.
 *
 * @returns undefined where the store does not hold one of the `txids`.
 */
export async function assembleBeef(
  txids: string[],
  store: TransactionReader,
): Promise<Uint8Array | undefined> {
  const ordered: TransactionRecord[] = []
  const seen = new Set<string>()
  for (const txid of txids) {
    if (seen.has(txid)) continue
    let last: TransactionRecord | undefined
    const visit = (record: TransactionRecord) => ({ item: record, before: unprovenParents(record) })
    for await (const record of ancestry({ txid, store, seen, visit })) {
      ordered.push(record)
      last = record
    }
    if (last?.txid !== txid) return undefined
  }
  return encodeBeef(ordered)
}

/** A transaction, with its merkle path where it is proven. */
interface ProvenBytes {
  raw: Uint8Array
  proof?: Pick<Proof, 'merklePath'>
}

/**
 * A BEEF V1 of transactions that stand parents first. The SDK's own writer sorts what has a missing ancestor
 * to the front, and the subject would no longer be last.
 */
export function encodeBeef(transactions: ProvenBytes[]): Uint8Array {
  const bumps = new Beef()
  const bumpIndexes = transactions.map(
    ({ proof }) =>
      proof && bumps.mergeBump(MerklePath.fromReader(new Utils.ReaderUint8Array(proof.merklePath), false)),
  )
  const writer = new Utils.Writer()
  writer.writeUInt32LE(BEEF_V1)
  writer.writeVarIntNum(bumps.bumps.length)
  for (const bump of bumps.bumps) writer.write(bump.toBinary())
  writer.writeVarIntNum(transactions.length)
  transactions.forEach(({ raw }, position) => {
    writer.write(raw)
    const bumpIndex = bumpIndexes[position]
    if (bumpIndex === undefined) {
      writer.writeUInt8(0)
    } else {
      writer.writeUInt8(1)
      writer.writeVarIntNum(bumpIndex)
    }
  })
  return writer.toUint8Array()
}
