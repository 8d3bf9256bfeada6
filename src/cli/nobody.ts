import { p2pkhLock } from '../../backend/src/protocol/address.js'

/**
 * Whose things are on a local network unless an owner is named: the public key hash of 20 zero bytes, to which nobody
 * knows a key. What is there stays where it is, and nothing depends on a key that somebody would have to make up and keep.
 */
export const NOBODY = '00'.repeat(20)
export const NOBODY_LOCK = p2pkhLock(NOBODY)
