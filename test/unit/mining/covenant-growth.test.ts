import fc from 'fast-check'
import { NAME_CHARACTERS } from '../../../backend/src/protocol/mine-node.js'
import { DEFAULT_SCRIPT_WORK, runScripts } from '../../../backend/src/protocol/run-scripts.js'
import {
  covenantChain,
  covenantMint,
  refusalByCheck,
  refusalByScript,
  refusingPart,
} from '../../support/mining/covenant-mints.js'
import { rounds } from '../../support/nightly.js'

const ofLength = (length: number) => new Uint8Array(length).fill(0x61)

test('all characters are minted from one node, in any order, and then none any more', () => {
  let orders = 0
  const anyOrder = fc.shuffledSubarray([...NAME_CHARACTERS], { minLength: NAME_CHARACTERS.length })
  fc.assert(
    fc.property(anyOrder, (order) => {
      const chain = covenantChain()
      for (const character of order) {
        const mint = covenantMint(chain, character)
        expect([refusalByScript(mint), refusalByCheck(mint)]).toEqual([undefined, undefined])
      }
      // The node is full: each of them once more is refused, one of them in each order tried.
      const again = order.slice(0, orders++ === 0 ? undefined : 1)
      for (const character of again) expect(refusingPart(covenantMint(chain, character))).toBe('character')
    }),
    { numRuns: rounds(2, 6), endOnFailure: true },
  )
})

test('the longest owner lock is not too expensive for a host that counts the work of scripts', () => {
  for (const covenantVersion of [1, 2] as const) {
    const chain = covenantChain({ covenantVersion })
    const { transaction, spent } = covenantMint(chain, 'a', { ownerLock: ofLength(65_000) })
    const { txid, raw } = transaction
    const steps = runScripts([{ txid, raw, spent: [spent], input: 0 }], { maxWork: DEFAULT_SCRIPT_WORK / 10 })
    expect(() => [...steps]).not.toThrow()
  }
})
