import { BeefError } from '../protocol/beef.js'
import { MerklePath } from '../protocol/merkle-path.js'
import { nativeHash256 } from './native-hash.js'
import type { Proof } from './records.js'

/**
 * The proof that a merkle path (BUMP, BRC-74) holds for a transaction, cut down to that transaction alone. Whether a block
 * has its root is for a chain tracker to say.
 *
 * @throws BeefError where the bytes are no merkle path that holds together, or one that does not hold the transaction.
 */
export function readProof({ txid, bump }: { txid: string; bump: Uint8Array }): Proof {
  const proof = proofIn(readPath(bump), txid)
  if (proof === undefined) throw new BeefError(`the merkle path does not contain ${txid}`)
  return proof
}

/** A merkle path that a stranger has sent. @throws BeefError where it does not hold together. */
export function readPath(bump: Uint8Array): MerklePath {
  return new MerklePath(bump, { hash: nativeHash256, fail: (message) => new BeefError(message) })
}

/** What of a merkle path proves one of the transactions in it; undefined where it is not there. */
export function proofIn(path: MerklePath, txid: string): Proof | undefined {
  const merklePath = path.cut(txid)
  return merklePath && { merklePath, height: path.height, root: path.root }
}
