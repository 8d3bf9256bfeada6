import { MerklePath, P2PKH, type PrivateKey, Transaction, UnlockingScript } from '@bsv/sdk'
import { beefOf, type FakeTransaction } from './fake-chain.js'

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
