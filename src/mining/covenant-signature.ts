import { BigNumber, Curve } from '@bsv/sdk'
import { concatBytes } from '../../backend/src/protocol/bytes.js'
import type { ScriptPart } from './script.js'

/** ALL | FORKID | ANYONECANPAY, as the byte after a signature. */
const SIGHASH_TYPE = 0xc1

/**
 * V + 512, V being the first byte of the message hash, falls into three classes of 114 values: 512 to 569, 570 to 683
 * and 684 to 767. The shifts 57, -57 and -171 move V onto 1 to 114 in each.
 */
const CLASS_SIZE = 114
const NEAR_SHIFT = 57
const FAR_SHIFT = -171

/**
 * Checks that the preimage is the one of this very input, by a signature made in script.
 *
 * ECDSA with the nonce k = 1 has r = G.x, and s = z + r·d for a key d. With d = c / r that is s = z + c: the message
 * hash plus a constant. For c = T·2^248 only the first byte changes. T is chosen by that byte, so that the sum is never
 * carried, never needs a byte of padding, and stays below half the order: low S, 71 bytes, for every hash.
 *
 * CHECKSIG hashes what is really spent, and the signature is made for the hash of what was pushed. The private keys are
 * public, and nothing depends on them.
 *
 *     … p -> … p
 */
export function authenticPreimage(): ScriptPart {
  return [
    // SPLIT takes V off; the byte 02 behind it makes it the number V + 512, which is positive and minimal for every V.
    'DUP HASH256 1 SPLIT TOALTSTACK 2 CAT', // p V+512 | z[1..31]
    // MOD has the sign of V + 512. DIV by the same negative number tells the classes apart: -4, -5, -6.
    `${-CLASS_SIZE} 2DUP MOD 1ADD`, // p V+512 -114 V+T | z[1..31]
    [signatureStart(), 'SWAP CAT FROMALTSTACK CAT', Uint8Array.of(SIGHASH_TYPE), 'CAT'], // p V+512 -114 sig
    'ROT ROT DIV 6 ADD', // p sig j: 2 for T = 57, 1 for -57, 0 for -171
    // 57 and -57 have keys d and -d: one X, and j + 1 is the prefix that tells them apart. IFDUP keeps a j only for the
    // branch that needs it; 0NOTEQUAL makes a strict boolean, as MINIMALIF wants.
    ['IFDUP 0NOTEQUAL IF 1ADD', keyOf(NEAR_SHIFT).subarray(1), 'CAT ELSE', keyOf(FAR_SHIFT), 'ENDIF'],
    'CHECKSIGVERIFY', // p
  ]
}

/** DER up to s, which follows with 32 bytes: neither r nor s has its top bit set, so that neither is padded. */
function signatureStart(): Uint8Array {
  const r = new Curve().g.getX().toArray('be', 32)
  return Uint8Array.of(0x30, 4 + r.length + 32, 0x02, r.length, ...r, 0x02, 32)
}

/** The compressed public key of d = T·2^248 / r, modulo the order of the curve. */
export function keyOf(shift: number): Uint8Array {
  const { g, n } = new Curve()
  const constant = new BigNumber(shift).mul(new BigNumber(2).pow(new BigNumber(248)))
  const key = g.mul(constant.mul(g.getX().invm(n)).umod(n))
  return concatBytes(Uint8Array.of(key.getY().isOdd() ? 3 : 2), Uint8Array.from(key.getX().toArray('be', 32)))
}
