import { toHex } from '../../../backend/src/protocol/bytes.js'
import { p2pkh } from '../protocol/fake-chain.js'

/** The public key hash of an owner, in hex. */
export function ownerOf(key: number): string {
  return toHex(p2pkh(key).subarray(3, 23))
}
