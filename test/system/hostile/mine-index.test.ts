import { nameOf, tested } from './attack.js'
import { expectBounded, useAttacks } from './attacked.js'
import { HONEST_MINING, mineIndexAttacks } from './attacks/mine.js'

// What an index says is a proposal: a lie costs a request, and no fee.

const MiB = 1024 * 1024
/** A name of three characters, and a few mints that somebody else was faster with. */
const FEW_MINTS = 8
/** A route answers with some KB; a proof of a node has at least one mint, as long as a submission, 72 MiB, and 8 MiB of what proves it. */
const MAX_SENT = { json: 2 * MiB, proof: (72 + 8) * MiB }

const attacks = tested(mineIndexAttacks())
const result = useAttacks([...attacks, ...HONEST_MINING])

/** What may be signed although the index means harm: all that it says before holds. */
const SIGNING: Record<string, number> = {
  // The network has a say, and an index that denies it is asked no more of.
  '409 to every mint': FEW_MINTS,
  'a mint that conflicts with every mint': FEW_MINTS,
  // Both descend from the genesis; which of them is spent, no proof can show.
  'two true nodes by turns': FEW_MINTS,
}

test.each(HONEST_MINING.map((attack) => [attack.deed, attack] as const))(
  'an honest index, %s',
  (_, attack) => {
    const { end, signed, doubleSpends } = result(attack)
    expect({ code: end.code, mints: signed.length, doubleSpends }).toEqual({
      code: 0,
      mints: 3,
      doubleSpends: [],
    })
  },
)

test.each(attacks.map((attack) => [nameOf(attack), attack] as const))('%s', (_, attack) => {
  const came = result(attack)
  const { deed } = attack
  expectBounded(came, { maxSent: deed.includes('/lookup') ? MAX_SENT.proof : MAX_SENT.json })
  expect(came.end.code).not.toBe(0)
  expect(came.end.stdout).toBe('')
  const most = deed.endsWith('/submit') ? 1 : (SIGNING[deed] ?? 0)
  expect(came.signed.length).toBeLessThanOrEqual(most)
})
