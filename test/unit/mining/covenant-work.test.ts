import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { LockingScript, Spend, UnlockingScript } from '@bsv/sdk'
import fc from 'fast-check'
import { fromHex, toHex } from '../../../backend/src/protocol/bytes.js'
import { meetsDifficulty, proofOfWork } from '../../../backend/src/protocol/mint.js'
import { encodePush } from '../../../backend/src/protocol/script-walk.js'
import { assemble, meetDifficulty } from '../../../src/mining/covenant.js'
import {
  covenantChain,
  covenantMint,
  refusalByCheck,
  refusingPart,
} from '../../support/mining/covenant-mints.js'
import { bytesOf } from '../../support/protocol/arbitraries.js'

const vectors = readFileSync(join(import.meta.dirname, '../../vectors/work.json'), 'utf8')
const { character, ownerLock, solutions } = JSON.parse(vectors) as {
  character: string
  ownerLock: string
  solutions: { bits: number; nonce: string; hash: string }[]
}

/** Around the ends of bytes, and the least and the most that there may be. */
const DIFFICULTIES = [1, 2, 7, 8, 9, 15, 16, 17, 24, 31, 32]

/** Whether the covenant's comparison, run by itself, takes a hash. */
function passes(hash: Uint8Array, difficulty: number, transactionVersion: number): boolean {
  const spend = new Spend({
    ...{ sourceTXID: '00'.repeat(32), sourceOutputIndex: 0, sourceSatoshis: 1, transactionVersion },
    ...{ otherInputs: [], outputs: [], inputIndex: 0, inputSequence: 0, lockTime: 0 },
    lockingScript: LockingScript.fromBinary(Array.from(assemble([meetDifficulty(difficulty), 'SIZE NIP']))),
    unlockingScript: UnlockingScript.fromBinary(Array.from(encodePush(hash))),
  })
  try {
    return spend.validate()
  } catch {
    return false
  }
}

describe('the work that the covenant wants is what the check wants', () => {
  test.each(DIFFICULTIES)('at %i bits', (difficulty) => {
    for (const version of [1, 2]) {
      for (const bits of [0, difficulty - 1, difficulty, difficulty + 1, 39]) {
        // The one bit that ends the zeros, with zeros and with ones after it.
        for (const fill of [0x00, 0xff]) {
          const shown = new Uint8Array(32).fill(fill)
          for (let i = 0; i < 5; i++) {
            const zeros = Math.min(8, Math.max(0, bits - 8 * i))
            shown[i] = zeros === 8 ? 0 : ((fill >> zeros) | (bits >= 8 * i ? 0x80 >> zeros : 0)) & 0xff
          }
          const hash = shown.reverse()
          expect(meetsDifficulty(hash, bits)).toBe(true)
          expect(meetsDifficulty(hash, bits + 1)).toBe(false)
          expect(passes(hash, difficulty, version)).toBe(bits >= difficulty)
        }
      }
    }
  })

  test('of any hash, and of those that read as negative numbers and as negative zeros', () => {
    const ending = fc.constantFrom(0x00, 0x01, 0x7f, 0x80, 0x81, 0xff)
    const endings = fc.array(ending, { minLength: 4, maxLength: 4 })
    const hashes = fc.tuple(bytesOf(28), endings).map(([start, end]) => Uint8Array.of(...start, ...end))
    const difficulties = fc.constantFrom(...DIFFICULTIES)
    const same = fc.property(hashes, difficulties, fc.constantFrom(1, 2), (hash, difficulty, version) => {
      expect(passes(hash, difficulty, version)).toBe(meetsDifficulty(hash, difficulty))
    })
    fc.assert(same, { numRuns: 200 })
  })
})

describe.each(solutions)('a solution of $bits bits', ({ bits, nonce, hash }) => {
  const first = (difficulty: number) =>
    covenantMint(covenantChain({ covenantVersion: 1, difficulty }), character, {
      nonce: fromHex(nonce),
      ownerLock: fromHex(ownerLock),
    })

  test('is accepted at that difficulty, and refused at the next', () => {
    expect(toHex(proofOfWork({ seed: new Uint8Array(), character, nonce: fromHex(nonce) }))).toBe(hash)
    expect([refusingPart(first(bits)), refusalByCheck(first(bits))]).toEqual(['none', undefined])
    for (const mint of [bits + 1, 32].map(first))
      expect([refusingPart(mint), refusalByCheck(mint)]).toEqual(['work', 'BAD_WORK'])
  })
})
