/** The fee in satoshis per 1,000 bytes that is usual: the SDK's own if it cannot ask miners (`LivePolicy`). */
export const DEFAULT_FEE_RATE = 100

/**
 * Bytes of a mint beside the scripts of nodes and the name: the other outputs, the preimage, a P2PKH coin that pays, and its change.
 */
const OTHER_BYTES = 735

/** The cost of mining the missing characters of a name. */
export interface MiningCost {
  mints: number
  /** How many hashes it takes on average. */
  hashes: number
  /** Approximate bytes of all mints together. Undefined if the script of the node is not known. */
  bytes?: number
  /** The fees of all mints at {@link DEFAULT_FEE_RATE}. */
  satoshis?: number
}

/**
 * @param mining.name A name that is free.
 * @param mining.domain Its longest mined prefix.
 * @param mining.nodeBytes The length of the script of the live node of that prefix, which each mint has three times.
 */
export function miningCost(mining: {
  name: string
  domain: string
  difficulty: number
  nodeBytes: number | undefined
}): MiningCost {
  const { name, domain, difficulty, nodeBytes } = mining
  const mints = name.length - domain.length
  const hashes = mints * 2 ** difficulty
  if (nodeBytes === undefined) return { mints, hashes }
  let bytes = 0
  for (let length = domain.length + 1; length <= name.length; length++)
    bytes += 3 * (nodeBytes + length - domain.length) + OTHER_BYTES + length
  return { mints, hashes, bytes, satoshis: Math.ceil((bytes * DEFAULT_FEE_RATE) / 1000) }
}
