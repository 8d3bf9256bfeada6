import { BEEF_V1, Beef, LockingScript, MerklePath, Transaction, UnlockingScript } from '@bsv/sdk'
import { p2pkhLock } from '../../backend/src/protocol/address.js'
import { toHex } from '../../backend/src/protocol/bytes.js'
import type * as sdk from '../../backend/src/protocol/sdk-types.js'
import {
  finishMint,
  type MintDraft,
  type MintPayer,
  type PaidMint,
  solvePlan,
  startMint,
} from './mint-transaction.js'

// Transactions that are in no chain. A host that checks no merkle proofs (CHAIN_TRACKER=scripts-only) accepts the merkle
// path of an imaginary block, and does not run the scripts of a transaction with a path, so no coin needs a signature.

/** The merkle path of a block that holds only this transaction. */
export function singleTransactionPath({ txid, height }: { txid: string; height: number }): sdk.MerklePath {
  return new MerklePath(height, [[{ offset: 0, hash: txid, txid: true }]])
}

/** A txid that no transaction has. */
export function randomTxid(): string {
  return toHex(crypto.getRandomValues(new Uint8Array(32)))
}

/**
 * The default owner on a local network: a public key hash of 20 zero bytes, whose key nobody knows. Its outputs are never
 * spent, and there is no key to keep.
 */
export const NOBODY = '00'.repeat(20)
export const NOBODY_LOCK = p2pkhLock(NOBODY)

/** Pays on a local network. By default, the names have no owner. */
export const FAKE_FUNDING_PAYER: MintPayer = { ownerLock: async () => NOBODY_LOCK, pay: fakeFundedMint }

/**
 * A mint that is funded by a fake coin.
 *
 * @throws MintError if the plan does not hold.
 */
export async function fakeFundedMint({
  plan,
  source,
}: Pick<MintDraft, 'plan' | 'source'>): Promise<PaidMint> {
  const solved = solvePlan(plan)
  // The node supplies one of the three satoshis in the outputs of a mint.
  const coin = proven(unsigned({ sourceTXID: randomTxid(), satoshis: 2 }), 1)
  const transaction = startMint(solved, source)
  transaction.addInput({
    sourceTransaction: coin,
    sourceOutputIndex: 0,
    unlockingScript: new UnlockingScript(),
  })
  await transaction.sign()
  const signed = finishMint({ plan: solved, transaction, input: 0 })
  proven(transaction, (source.merklePath?.blockHeight ?? 1) + 1)
  // Includes the coin's transaction: an indexer needs its value to locate the ordinals of the mint (BRC-159). Proven
  // transactions keep the order in which they are merged, and the last one is the subject.
  const beef = new Beef(BEEF_V1)
  beef.mergeTransaction(coin)
  beef.mergeTransaction(transaction)
  return { ...signed, beef: Uint8Array.from(beef.toBinary()), fee: 0 }
}

function unsigned({ sourceTXID, satoshis }: { sourceTXID: string; satoshis: number }): Transaction {
  const input = { sourceTXID, sourceOutputIndex: 0, unlockingScript: new UnlockingScript() }
  return new Transaction(1, [input], [{ satoshis, lockingScript: new LockingScript() }])
}

function proven(transaction: Transaction, height: number): Transaction {
  transaction.merklePath = singleTransactionPath({ txid: transaction.id('hex'), height })
  return transaction
}
