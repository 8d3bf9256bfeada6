import { ACCEPTING_ARC_STATUSES } from '../../support/mining/miners-services.js'
import { nameOf, tested } from './attack.js'
import { expectBounded, useAttacks } from './attacked.js'
import { mineArcAttacks } from './attacks/mine.js'

// What ARC says of a mint decides what becomes of it, in every state and with every status that it has.

const MiB = 1024 * 1024

const attacks = tested(mineArcAttacks())
const result = useAttacks(attacks)

/** With these a mint is under way: mining goes on. */
const TAKEN = new Set<string>(ACCEPTING_ARC_STATUSES)

test.each(attacks.map((attack) => [nameOf(attack), attack] as const))('%s', (_, attack) => {
  const came = result(attack)
  expectBounded(came, { maxSent: MiB })
  expect(came.doubleSpends).toEqual([])
  if (TAKEN.has(attack.deed)) {
    expect(came.end.code).toBe(0)
    expect(came.signed).toHaveLength(3)
  } else {
    expect(came.end.code).not.toBe(0)
    // The first mint is not known to be anywhere: the next would spend what it left.
    expect(came.signed).toHaveLength(1)
    // The index hears of a mint after the network took it.
    expect(came.requests.filter((each) => each === 'POST /submit')).toEqual([])
  }
})
