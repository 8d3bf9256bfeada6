import { nameOf, tested } from './attack.js'
import { expectBounded, useAttacks } from './attacked.js'
import { mineWalletAttacks } from './attacks/mine.js'

// A wallet pays, and may be broken or somebody else's: what it makes is checked before anything is signed.

const MiB = 1024 * 1024
/** An answer of a wallet holds a transaction with its ancestors, in JSON. */
const MAX_SENT = 64 * MiB

const attacks = tested(mineWalletAttacks())
const result = useAttacks(attacks)

/** What it sent by itself, whatever it says afterwards. */
const SENT: Record<string, number> = {
  'says it failed after it sent': 1,
  'gives another transaction back than it drafted': 1,
}

test.each(attacks.map((attack) => [nameOf(attack), attack] as const))('%s', (_, attack) => {
  const came = result(attack)
  expectBounded(came, { maxSent: MAX_SENT })
  expect(came.end.code).not.toBe(0)
  expect(came.signed.length).toBeLessThanOrEqual(SENT[attack.deed] ?? 0)
})
