import { decodeAddress, encodeAddress, type Network, p2pkhLock } from '../../backend/src/protocol/address.js'
import { CommandError } from './command.js'

/**
 * The lock of a P2PKH address.
 *
 * @param network The one whose address it has to be; unset, either will do.
 * @throws CommandError where it is none.
 */
export function addressLock(address: string, network?: Network): Uint8Array {
  const hash = decodeAddress(address)
  if (hash === undefined)
    throw new CommandError(`not a P2PKH address: ${JSON.stringify(address)}`, { exit: 'usage' })
  if (network !== undefined && encodeAddress(hash, network) !== address)
    throw new CommandError(`not an address of NETWORK=${network}: ${address}`, { exit: 'usage' })
  return p2pkhLock(hash)
}
