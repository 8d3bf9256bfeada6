import { BEEF_V1, Beef, LockingScript, MerklePath, Transaction, UnlockingScript } from '@bsv/sdk'
import { p2pkhLock } from '../../backend/src/protocol/address.js'
import { toHex } from '../../backend/src/protocol/bytes.js'
import {
  finishMint,
  type MintDraft,
  type MintPayer,
  type PaidMint,
  solvePlan,
  startMint,
} from './mint-transaction.js'

// Transactions that no chain holds. A host that checks no merkle proofs (CHAIN_TRACKER=scripts-only) takes the path of a
// block that holds nothing else for one, and of what a block holds no script is run: so no coin is signed for.

/** The path of a block that holds nothing but this transaction. */
export function singleTransactionPath({ txid, height }: { txid: string; height: number }): MerklePath {
  return new MerklePath(height, [[{ offset: 0, hash: txid, txid: true }]])
}

/** A txid of nothing, another one each time. */
export function randomTxid(): string {
  return toHex(crypto.getRandomValues(new Uint8Array(32)))
}

/**
 * Whose things are on a local network unless an owner is named: the public key hash of 20 zero bytes, to which nobody
 * knows a key. What is there stays where it is, and nothing depends on a key that somebody would have to make up and keep.
 */
export const NOBODY = '00'.repeat(20)
export const NOBODY_LOCK = p2pkhLock(NOBODY)

/** Pays on a local network. Names that are given to no owner are nobody's. */
export const FAKE_FUNDING_PAYER: MintPayer = { ownerLock: async () => NOBODY_LOCK, pay: fakeFundedMint }

/**
 * A mint, paid with a coin made up for it.
 *
 * @throws MintError where the plan does not hold.
 */
export async function fakeFundedMint({
  plan,
  source,
}: Pick<MintDraft, 'plan' | 'source'>): Promise<PaidMint> {
  const solved = solvePlan(plan)
  // The node brings one of the three satoshis that a mint puts into its outputs.
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
  // What made the coin goes with it: by its value an indexer tells where the ordinals of the mint start (BRC-159). Proven
  // transactions stay in the order in which they were put in, and the last is the subject.
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
