import { OP } from '@bsv/sdk'
import { concatBytes, fromHex } from '../../../backend/src/protocol/bytes.js'
import { encodePush } from '../../../backend/src/protocol/script-walk.js'

/** A signature in strict DER that is none of anything, all flags signed, and the generator as its key. */
const SIGNATURE = fromHex(
  '304402207fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a002207fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a041',
)
const KEY = fromHex('0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798')
const KEY_PUSH = encodePush(KEY)

/**
 * A locking script of about so many bytes in which one opcode checks one signature against key after key, and finds none that
 * made it. Whatever unlocks it is dropped.
 */
export function multisigLock(bytes: number): Uint8Array {
  const keys = Math.floor((bytes - 90) / KEY_PUSH.length)
  const allKeys = new Uint8Array(keys * KEY_PUSH.length)
  for (let key = 0; key < keys; key++) allKeys.set(KEY_PUSH, key * KEY_PUSH.length)
  const count = encodePush(Uint8Array.of(keys & 0xff, keys >> 8, ...(keys >> 8 > 0x7f ? [0] : [])))
  return concatBytes(
    Uint8Array.of(OP.OP_DROP, OP.OP_0),
    encodePush(SIGNATURE),
    Uint8Array.of(OP.OP_1),
    allKeys,
    count,
    Uint8Array.of(OP.OP_CHECKMULTISIG),
  )
}

/** The lengths of the proofs, in bytes. */
export const MULTISIG_BYTES = [19_000, 172_000, 546_000] as const
