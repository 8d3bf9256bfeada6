import { hash } from 'node:crypto'
import type { Hash256 } from '../protocol/transaction.js'

/** Node's own SHA-256: every transaction that comes in is hashed here. */
export function sha256(bytes: Uint8Array): Buffer {
  return hash('sha256', bytes, 'buffer')
}

export const nativeHash256: Hash256 = (bytes) => sha256(sha256(bytes))
