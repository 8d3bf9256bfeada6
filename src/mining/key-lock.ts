import type { PublicKey } from '@bsv/sdk'
import { p2pkhLock } from '../../backend/src/protocol/address.js'

/** The P2PKH lock of a key. */
export function keyLock(key: PublicKey): Uint8Array {
  return p2pkhLock(key.toHash('hex') as string)
}
