import { NAME_CHARACTERS } from '../../backend/src/protocol/mine-node.js'
import {
  covenantChain,
  covenantMint,
  RULES,
  refusalByCheck,
  refusalByScript,
} from '../support/covenant-mints.js'

const ALL_RULES = Object.keys(RULES) as (keyof typeof RULES)[]

describe('a mint', () => {
  test.each(ALL_RULES)('is accepted under the %s rules, of version 1 and of version 2', (rules) => {
    const chain = covenantChain()
    for (const [name, version] of [
      ['a', 1],
      ['b', 2],
      ['ab', 1],
      ['ba', 2],
    ] as const) {
      const mint = covenantMint(chain, name, { version })
      expect(refusalByScript(mint, rules)).toBeUndefined()
      expect(refusalByCheck(mint)).toBeUndefined()
    }
  })

  test('is accepted for every character at one node', () => {
    const chain = covenantChain()
    for (const c of NAME_CHARACTERS) expect(refusalByScript(covenantMint(chain, c))).toBeUndefined()
  })
})
