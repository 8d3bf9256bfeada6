import { OP, TransactionSignature } from '@bsv/sdk'
import { concatBytes } from '../../../backend/src/protocol/bytes.js'
import { readPushes } from '../../../backend/src/protocol/script-walk.js'
import { hash256 } from '../../../backend/src/protocol/transaction.js'
import {
  type CovenantSpend,
  covenantChain,
  covenantMint,
  interpreter,
} from '../../support/mining/covenant-mints.js'

/** What the covenant adds to the first byte of the hash. */
function shiftOf(first: number): number {
  return first < 58 ? 57 : first < 172 ? -57 : -171
}

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
  expect(run.validate()).toBe(true)
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
