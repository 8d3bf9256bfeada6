import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { nameOf, tested } from './attack.js'
import { expectBounded, useAttacks } from './attacked.js'
import { headersAttacks, resolveAttacks, TRUTH } from './attacks/resolve.js'

// A hostile index beside an honest one: what it does costs its own answer, and no more.

const MiB = 1024 * 1024
/** One index may show 64 MiB in each of three answers; 20 of them, no more than all may. */
const MAX_SENT = 256 * MiB

const attacks = tested([...resolveAttacks(), ...resolveAttacks('verify')])
const headers = tested(headersAttacks())
const result = useAttacks([...attacks, ...headers])

test.each(attacks.map((attack) => [nameOf(attack), attack] as const))('%s', (_, attack) => {
  const came = result(attack)
  expectBounded(came, { maxSent: MAX_SENT })
  // The honest index is believed, or rather: what it shows holds.
  expect(came.end.code).toBe(0)
  expect(came.end.stdout).toContain(formatOutpoint(TRUTH.tip))
})

describe('with headers of somebody who means harm', () => {
  test.each(headers.map((attack) => [attack.deed, attack] as const))(
    'the service does this: %s',
    (_, attack) => {
      const came = result(attack)
      expectBounded(came, { maxSent: 16 * MiB })
      expect(came.end.code).toBe(5)
      expect(came.end.stdout).toBe('')
    },
  )
})
