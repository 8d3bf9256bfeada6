import { nameOf, tested } from './attack.js'
import { expectBounded, useAttacks } from './attacked.js'
import { clientAttacks, HONEST_CLIENT, TRUE_TIP } from './attacks/client.js'

// `minetree/client` among lookup hosts and trackers of which one is honest.

const MiB = 1024 * 1024

const attacks = tested(clientAttacks())
const result = useAttacks([...attacks, HONEST_CLIENT])

test('honest hosts and trackers', () => {
  expect(result(HONEST_CLIENT).end).toMatchObject({ code: 0, stdout: expect.stringContaining(TRUE_TIP) })
})

test.each(attacks.map((attack) => [nameOf(attack), attack] as const))('%s', (_, attack) => {
  const came = result(attack)
  expectBounded(came, { maxSent: 256 * MiB, failure: 'ResolutionError NO_PROOF: ' })
  // Where 500 hosts are named and none is honest, there is nothing to find.
  if (attack.deed.startsWith('500 hosts')) {
    expect(came.end.code).toBe(1)
    const asked = new Set(came.requests.filter((each) => /bad\d+\/lookup/.test(each)))
    expect(asked.size).toBeLessThanOrEqual(100)
  } else {
    expect(came.end.code).toBe(0)
    expect(came.end.stdout).toContain(TRUE_TIP)
  }
})
