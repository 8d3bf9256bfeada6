import { nameOf, tested } from './attack.js'
import { expectBounded, useAttacks } from './attacked.js'
import { HONEST_PUBLISHING, publishAttacks } from './attacks/publish.js'

const MiB = 1024 * 1024

const attacks = tested(publishAttacks())
const result = useAttacks([...attacks, HONEST_PUBLISHING])

test('an honest server takes a page', () => {
  expect(result(HONEST_PUBLISHING).end).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('.c.localhost'),
  })
})

test.each(attacks.map((attack) => [nameOf(attack), attack] as const))('%s', (_, attack) => {
  const came = result(attack)
  expectBounded(came, { maxSent: 4 * MiB })
  expect(came.end.code).not.toBe(0)
  expect(came.end.stdout).toBe('')
})
