import { type Hash256, hash256 } from '../../backend/src/protocol/transaction.js'

/** As much of Node as is used here: the client runs in browsers as well, and so imports nothing of it. */
interface Host {
  process?: {
    /** From Node 20.16 on. */
    getBuiltinModule?: (name: 'node:crypto') => {
      createHash(algorithm: 'sha256'): { update(bytes: Uint8Array): { digest(): Uint8Array } }
    }
  }
}

/**
 * The double SHA-256 to use where the caller gives none: Node's own where it runs there, which is some ten times as fast,
 * else the SDK's. Most of the time that a proof takes goes into hashes.
 */
export const hostHash256: Hash256 = nativeHash(globalThis as Host) ?? hash256

/** Node's SHA-256, twice; undefined where the host does not give it. */
export function nativeHash({ process }: Host): Hash256 | undefined {
  const crypto = process?.getBuiltinModule?.('node:crypto')
  if (crypto === undefined) return undefined
  const once = (bytes: Uint8Array): Uint8Array => crypto.createHash('sha256').update(bytes).digest()
  // A plain array: of a Buffer, `slice` and the like do other things.
  return (bytes) => new Uint8Array(once(once(bytes)))
}
