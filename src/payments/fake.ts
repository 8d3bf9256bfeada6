import { BEEF_V1, Beef, LockingScript, MerklePath, Transaction, UnlockingScript } from '@bsv/sdk'
import { p2pkhLock } from '../../backend/src/protocol/address.js'
import { toHex } from '../../backend/src/protocol/bytes.js'
import type * as sdk from '../../backend/src/protocol/sdk-types.js'
import { type Payer, startTransaction } from './draft.js'

// Transactions that are in no chain. A host that checks no merkle proofs (CHAIN_TRACKER=scripts-only) accepts the merkle
// path of an imaginary block, and does not run the scripts of a transaction with a path, so no coin needs a signature.

/** The merkle path of a block that holds only this transaction. */
export function singleTransactionPath({ txid, height }: { txid: string; height: number }): sdk.MerklePath {
  return new MerklePath(height, [[{ offset: 0, hash: txid, txid: true }]])
}

export function randomTxid(): string {
  return toHex(crypto.getRandomValues(new Uint8Array(32)))
}

/**
 * The default owner on a local network: a public key hash of 20 zero bytes, whose key nobody knows. Its outputs are never
 * spent, and there is no key to keep.
 */
export const NOBODY = '00'.repeat(20)
export const NOBODY_LOCK = p2pkhLock(NOBODY)

/** Pays on a local network, with a coin that does not exist: nothing is paid, kept or sent to a network. */
export const FAKE_PAYER: Payer = {
  async pay(draft) {
    const transaction = startTransaction(draft)
    const before = draft.inputs.map(({ source }) => source.merklePath?.blockHeight ?? 1)
    // Includes the coin's transaction: an indexer needs its value, which is never 1, to locate ordinals (BRC-159).
    const coin = proven(coinOf(transaction), Math.max(1, ...before))
    transaction.addInput({
      sourceTransaction: coin,
      sourceOutputIndex: 0,
      unlockingScript: new UnlockingScript(),
    })
    await transaction.sign()
    draft.checkSigned?.(transaction)
    proven(transaction, Math.max(1, ...before) + 1)
    // Proven transactions stay in the order of merging, and the last one is the subject.
    const beef = new Beef(BEEF_V1)
    beef.mergeTransaction(coin)
    beef.mergeTransaction(transaction)
    return { transaction, beef: Uint8Array.from(beef.toBinary()), fee: 0 }
  },
}

function coinOf({ outputs }: sdk.Transaction): sdk.Transaction {
  const satoshis = outputs.reduce((sum, each) => sum + (each.satoshis ?? 0), 1)
  const input = { sourceTXID: randomTxid(), sourceOutputIndex: 0, unlockingScript: new UnlockingScript() }
  return new Transaction(1, [input], [{ satoshis, lockingScript: new LockingScript() }])
}

function proven(transaction: sdk.Transaction, height: number): sdk.Transaction {
  transaction.merklePath = singleTransactionPath({ txid: transaction.id('hex'), height })
  return transaction
}
