import { decodeAddress, p2pkhLock } from '../../backend/src/protocol/address.js'
import { CommandError } from './command-error.js'

/**
 * The lock of a P2PKH address.
 *
 * @throws CommandError where it is none.
 */
export function addressLock(address: string): Uint8Array {
  const hash = decodeAddress(address)
  if (hash === undefined)
    throw new CommandError(`not a P2PKH address: ${JSON.stringify(address)}`, { exit: 'usage' })
  return p2pkhLock(hash)
}
