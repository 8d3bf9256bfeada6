import { MerklePath, P2PKH, type PrivateKey, Transaction, UnlockingScript } from '@bsv/sdk'
import { nativeHash256 } from '../../../backend/src/graph/native-hash.js'
import type { Proof } from '../../../backend/src/graph/records.js'
import { formatOutpoint, type Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { readTransaction } from '../../../backend/src/protocol/transaction.js'
import { beefOf, type FakeOutput, type FakeTransaction } from './fake-chain.js'
import { encodeTransaction, type FakeInput } from './raw-transaction.js'

/** A transaction of exactly these inputs and outputs, smaller than those of a fake chain, and quicker to make. */
export function bareTransaction(parts: {
  inputs: readonly (Outpoint | FakeInput)[]
  outputs: readonly FakeOutput[]
  height?: number
  lockTime?: number
}): FakeTransaction {
  const inputs = parts.inputs.map(
    (input): FakeInput =>
      'outpoint' in input ? input : { outpoint: input, unlockingScript: new Uint8Array() },
  )
  const raw = encodeTransaction({ ...parts, inputs })
  const transaction = readTransaction(raw, { hash: nativeHash256 })
  const { txid } = transaction
  return {
    ...{ txid, raw, transaction, height: parts.height ?? 700_000 },
    outpoint: (vout) => formatOutpoint({ txid, vout }),
  }
}

/** A proof that a transaction is the second of a block of two: the first would be the coinbase, and is taken for no other. */
export function proofOf({ txid, height }: Pick<FakeTransaction, 'txid' | 'height'>): Proof {
  const leaves = [
    { offset: 0, hash: 'cb'.repeat(32) },
    { offset: 1, hash: txid, txid: true },
  ]
  const path = new MerklePath(height, [leaves])
  return { merklePath: Uint8Array.from(path.toBinary()), height, root: path.computeRoot(txid) }
}

/** A script that anything unlocks. */
export const ANYONE = Uint8Array.of(0x51)

/** One of them, by turns. */
export function pick<Item>(items: readonly Item[], index: number): Item {
  const item = items[index % items.length]
  if (item === undefined) throw new Error('there is nothing to pick from')
  return item
}

/** A transaction of a fake chain as the SDK has it, proven by a block that holds nothing else. */
export function sdkTransaction(fake: FakeTransaction): Transaction {
  return Transaction.fromBEEF(Array.from(beefOf(fake)))
}

/** The transaction, proven by a block that holds nothing else. */
export function provenAlone(transaction: Transaction, height = 700_000): Transaction {
  const hash = transaction.id('hex')
  transaction.merklePath = new MerklePath(height, [[{ offset: 0, hash, txid: true }]])
  return transaction
}

/** A proven transaction with coins of these values for a key, another one each time. */
export function coinsFor(key: PrivateKey, ...values: number[]): Transaction {
  made++
  const transaction = new Transaction()
  transaction.addInput({
    sourceTXID: made.toString(16).padStart(64, 'e'),
    sourceOutputIndex: 0,
    unlockingScript: new UnlockingScript(),
  })
  for (const satoshis of values)
    transaction.addOutput({ satoshis, lockingScript: new P2PKH().lock(key.toAddress()) })
  return provenAlone(transaction)
}

let made = 0
