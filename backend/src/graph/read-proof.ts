import { MerklePath, Utils } from '@bsv/sdk'
import { BeefError, checkBumpFrame } from '../protocol/beef.js'
import type { Proof } from './records.js'

/** Heights are 32-bit where block headers are; far more blocks than there will be. */
const MAX_HEIGHT = 0x7fffffff

/**
 * The proof that a merkle path (BUMP, BRC-74) holds for a transaction, cut down to that transaction alone. Whether a block
 * has its root is for a chain tracker to say.
 *
 * @throws BeefError where the bytes are no merkle path, or one that does not hold the transaction.
 */
export function readProof({ txid, bump }: { txid: string; bump: Uint8Array }): Proof {
  checkBumpFrame(bump)
  const path = readPath(bump)
  const held = path.path[0]?.some(({ hash }) => hash === txid) ?? false
  if (!held) throw new BeefError(`the merkle path does not hold ${txid}`)
  return proofIn(path, txid)
}

/** A merkle path as it stands in a BEEF. @throws BeefError where it cannot be one. */
export function readPath(bump: Uint8Array): MerklePath {
  let path: MerklePath
  try {
    path = MerklePath.fromReader(new Utils.ReaderUint8Array(bump), false)
  } catch (cause) {
    throw new BeefError('a merkle path cannot be read', { cause })
  }
  if (path.blockHeight > MAX_HEIGHT) throw new BeefError(`no block has the height ${path.blockHeight}`)
  return path
}

/** What of a merkle path proves one of the transactions in it. @throws BeefError where nothing does. */
export function proofIn(path: MerklePath, txid: string): Proof {
  try {
    return {
      merklePath: Uint8Array.from(path.extract([txid]).toBinary()),
      height: path.blockHeight,
      root: path.computeRoot(txid),
    }
  } catch (cause) {
    throw new BeefError(`the merkle path given for ${txid} does not hold together`, { cause })
  }
}
