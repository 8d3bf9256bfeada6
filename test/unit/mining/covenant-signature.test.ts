import { BigNumber, Curve, ECDSA, OP, PublicKey, Signature, TransactionSignature } from '@bsv/sdk'
import fc from 'fast-check'
import { concatBytes } from '../../../backend/src/protocol/bytes.js'
import { readPushes } from '../../../backend/src/protocol/script-walk.js'
import { hash256 } from '../../../backend/src/protocol/transaction.js'
import { keyOf } from '../../../src/mining/covenant-parts.js'
import {
  type CovenantSpend,
  covenantChain,
  covenantMint,
  interpreter,
} from '../../support/mining/covenant-mints.js'
import { bytesOf } from '../../support/protocol/arbitraries.js'

const { g, n } = new Curve()
const BYTES = Array.from({ length: 256 }, (_, byte) => byte)

/** What the covenant adds to the first byte of the hash. */
function shiftOf(first: number): number {
  return first < 58 ? 57 : first < 172 ? -57 : -171
}

test('every first byte is moved to between 1 and 114, by the class and the remainder of 114', () => {
  for (const first of BYTES) {
    const moved = ((first + 512) % 114) + 1
    expect(moved).toBe(first + shiftOf(first))
    expect(moved).toBeGreaterThanOrEqual(1)
    expect(moved).toBeLessThanOrEqual(114)
    expect([57, -57, -171][Math.floor((first + 512) / 114) - 4]).toBe(shiftOf(first))
  }
})

test('the keys of 57 and of -57 are one point and its mirror, and the first has the odd Y', () => {
  expect(keyOf(57)[0]).toBe(3)
  expect(keyOf(-57)[0]).toBe(2)
  expect(keyOf(-57).subarray(1)).toEqual(keyOf(57).subarray(1))
})

test('r and the hash moved are a signature of the hash, whatever its bytes', () => {
  const keys = new Map([57, -57, -171].map((shift) => [shift, PublicKey.fromDER(Array.from(keyOf(shift)))]))
  fc.assert(
    fc.property(fc.constantFrom(...BYTES), bytesOf(31), (first, rest) => {
      const shift = shiftOf(first)
      const key = keys.get(shift)
      if (key === undefined) throw new Error('no key')
      const signature = new Signature(g.getX(), new BigNumber([first + shift, ...rest]))
      expect(signature.s.cmp(n.divn(2))).toBeLessThan(0)
      expect(ECDSA.verify(new BigNumber([first, ...rest]), signature, key)).toBe(true)
    }),
    { numRuns: 300 },
  )
})

/** The signature that a spend's interpreter has on its stack as it comes to check it. */
function signatureOf(spend: CovenantSpend): number[] {
  const run = interpreter(spend)
  while (
    run.context !== 'LockingScript' ||
    run.lockingScript.chunks[run.programCounter]?.op !== OP.OP_CHECKSIGVERIFY
  ) {
    if (!run.step()) throw new Error('the script ended without checking a signature')
  }
  const signature = run.stack.at(-2)
  if (signature === undefined) throw new Error('nothing on the stack')
  // Goes on to the end, so that the signature is known to pass.
  expect(interpreter(spend).validate()).toBe(true)
  return signature
}

test('for every first byte of the hash, with no help of the spender, the signature has 71 bytes and a low S', () => {
  const chain = covenantChain()
  const from = chain.node('')
  const seen = new Map<number, number[]>()
  for (let sequence = 0; seen.size < 256; sequence++) {
    const mint = covenantMint(chain, 'a', { from, sequence, funding: [], trailing: [] })
    const pushes = readPushes(mint.transaction.inputs[0]?.unlockingScript ?? new Uint8Array(), { limit: 5 })
    const [first] = hash256(concatBytes(...pushes.slice(4)))
    if (first === undefined || seen.has(first)) continue
    seen.set(first, signatureOf(mint))
  }
  for (const [first, bytes] of seen) {
    const signature = TransactionSignature.fromChecksigFormat(bytes)
    expect(bytes).toHaveLength(71)
    expect(bytes).toEqual(signature.toChecksigFormat())
    expect(signature.hasLowS()).toBe(true)
    expect(signature.scope).toBe(0xc1)
    expect(signature.s.toArray('be', 32)[0]).toBe(first + shiftOf(first))
  }
})
