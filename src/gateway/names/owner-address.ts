import { LRUCache } from 'lru-cache'
import { encodeAddress, type Network } from '../../../backend/src/protocol/address.js'

/** Working out an address takes two hashes; owners are asked for again and again. */
const known = new LRUCache<string, string>({ max: 10_000 })

/** The address of a public key hash in hex. */
export function ownerAddress(owner: string, network: Network): string {
  const key = `${network} ${owner}`
  const address = known.get(key) ?? encodeAddress(owner, network)
  known.set(key, address)
  return address
}
