import { Utils } from '@bsv/sdk'
import { concatBytes, fromHex, toHex } from './bytes.js'
import { type Hash256, hash256 } from './transaction.js'

/** The networks that have addresses of their own. */
export type Network = 'main' | 'test'

/** The version byte of a P2PKH address. */
const VERSIONS: Record<Network, number> = { main: 0x00, test: 0x6f }

/** OP_DUP OP_HASH160, and the push of 20 bytes. */
const BEFORE = [0x76, 0xa9, 0x14]
/** OP_EQUALVERIFY OP_CHECKSIG. */
const AFTER = [0x88, 0xac]
const HASH_LENGTH = 20
const CHECKSUM_LENGTH = 4
/** The most base58 characters of 25 bytes. */
const MAX_ADDRESS = 35
const LOCK_LENGTH = BEFORE.length + HASH_LENGTH + AFTER.length

/** The public key hash, in hex, that a lock pays to; undefined unless the lock is exactly P2PKH. */
export function p2pkhOwner(lock: Uint8Array): string | undefined {
  if (lock.length !== LOCK_LENGTH) return undefined
  const end = BEFORE.length + HASH_LENGTH
  const fits =
    BEFORE.every((byte, at) => lock[at] === byte) && AFTER.every((byte, at) => lock[end + at] === byte)
  return fits ? toHex(lock.subarray(BEFORE.length, end)) : undefined
}

/** The P2PKH lock of a public key hash in hex. */
export function p2pkhLock(owner: string): Uint8Array {
  return concatBytes(Uint8Array.from(BEFORE), fromHex(owner), Uint8Array.from(AFTER))
}

/** The address of a public key hash in hex. @param hash By default one that also runs in browsers, but is slower. */
export function encodeAddress(owner: string, network: Network, hash: Hash256 = hash256): string {
  const payload = concatBytes(Uint8Array.of(VERSIONS[network]), fromHex(owner))
  return Utils.toBase58(Array.from(concatBytes(payload, hash(payload).subarray(0, CHECKSUM_LENGTH))))
}

/** The public key hash, in hex, of a P2PKH address of either network; undefined for anything else. */
export function decodeAddress(text: string): string | undefined {
  if (text.length > MAX_ADDRESS) return undefined
  try {
    const { prefix, data } = Utils.fromBase58Check(text, 'hex')
    const known = Object.values(VERSIONS).some((version) => toHex(Uint8Array.of(version)) === prefix)
    return known && typeof data === 'string' && data.length === 2 * HASH_LENGTH ? data : undefined
  } catch {
    // It throws for characters outside base58 and for a wrong checksum.
    return undefined
  }
}

/**
 * The P2PKH lock of an address, or what is wrong with the address.
 *
 * @param network The network that the address must belong to; by default, either will do.
 */
export function addressLock(
  address: string,
  network?: Network,
): Uint8Array | 'not an address' | 'other network' {
  const owner = decodeAddress(address)
  if (owner === undefined) return 'not an address'
  if (network !== undefined && encodeAddress(owner, network) !== address) return 'other network'
  return p2pkhLock(owner)
}
