import type { CovenantVersion } from '../../../backend/src/protocol/mint.js'
import {
  covenantChain,
  covenantMint,
  RULES,
  refusalByCheck,
  refusalByScript,
  refusingPart,
} from '../../support/mining/covenant-mints.js'
import { p2pkh } from '../../support/protocol/fake-chain.js'

/** Two names with a prefix in common, all their prefixes, and another one. */
const HISTORY = ['g', 'go', 'goo', 'go-', 'go-o', 'x']
const owner = p2pkh(7)

/** Mines the history in one tree, and makes the same mints, with the same solutions, in a tree with another genesis. */
function replayed(covenantVersion: CovenantVersion) {
  const first = covenantChain({ covenantVersion, difficulty: 8 })
  const second = covenantChain({ covenantVersion, difficulty: 8, change: 1001 })
  expect(first.deployment.genesis).not.toEqual(second.deployment.genesis)
  expect(first.node('').lockingScript).toEqual(second.node('').lockingScript)
  return HISTORY.map((name) => {
    const own = covenantMint(first, name, { ownerLock: owner })
    const nonce = first.lastNonce
    return { name, own, replay: covenantMint(second, name, { ownerLock: owner, nonce }) }
  })
}

describe('a history of version 2, mint for mint in a tree with another genesis', () => {
  const mints = replayed(2)

  test.each(mints)('$name: accepted in its tree, refused in the other', ({ own, replay }) => {
    expect(refusalByCheck(own)).toBeUndefined()
    expect(refusalByCheck(replay)).toBe('BAD_NONCE')
    for (const rules of Object.keys(RULES) as (keyof typeof RULES)[]) {
      expect(refusalByScript(own, rules)).toBeUndefined()
      expect(refusingPart(replay, rules)).toBe('work')
    }
  })
})

test('a history of version 1 is valid in every tree', () => {
  for (const { own, replay } of replayed(1))
    for (const mint of [own, replay])
      expect([refusalByScript(mint), refusalByCheck(mint)]).toEqual([undefined, undefined])
})
