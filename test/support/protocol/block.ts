import { MerklePath } from '@bsv/sdk'
import type { Proof, TransactionRecord } from '../../../backend/src/graph/records.js'
import type { FakeTransaction } from './fake-chain.js'

/** The path of a block that holds two transactions, with both of them in it. */
export function blockOfTwo(first: FakeTransaction, second: FakeTransaction, height: number): MerklePath {
  return new MerklePath(height, [
    [
      { offset: 0, hash: first.txid, txid: true },
      { offset: 1, hash: second.txid, txid: true },
    ],
  ])
}

/** What of a block's path proves one of its transactions. */
export function proofIn(block: MerklePath, { txid }: { txid: string }): Proof {
  return {
    merklePath: Uint8Array.from(block.extract([txid]).toBinary()),
    height: block.blockHeight,
    root: block.computeRoot(txid),
  }
}

/** A transaction as a record, in a block that holds nothing else; `height` undefined: in none. */
export function recordOf(transaction: FakeTransaction, height?: number): TransactionRecord {
  const { txid, raw } = transaction
  if (height === undefined) return { txid, raw }
  const block = new MerklePath(height, [[{ offset: 0, hash: txid, txid: true }]])
  return { txid, raw, proof: proofIn(block, transaction) }
}
