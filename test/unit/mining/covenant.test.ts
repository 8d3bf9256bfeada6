import { NAME_CHARACTERS } from '../../../backend/src/protocol/mine-node.js'
import {
  covenantChain,
  covenantMint,
  RULES,
  refusalByCheck,
  refusalByScript,
} from '../../support/mining/covenant-mints.js'

const ALL_RULES = Object.keys(RULES) as (keyof typeof RULES)[]

describe('a mint', () => {
  test.each(ALL_RULES)('is accepted under the %s rules', (rules) => {
    const chain = covenantChain()
    for (const name of ['a', 'b', 'ab', 'ba']) {
      const mint = covenantMint(chain, name)
      expect(refusalByScript(mint, rules)).toBeUndefined()
      expect(refusalByCheck(mint)).toBeUndefined()
    }
  })

  test('is accepted for every character at one node', () => {
    const chain = covenantChain()
    for (const c of NAME_CHARACTERS) expect(refusalByScript(covenantMint(chain, c))).toBeUndefined()
  })
})
