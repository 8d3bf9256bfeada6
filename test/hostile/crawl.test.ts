import { isTested, nameOf } from './attack.js'
import { expectBounded, useAttacks } from './attacked.js'
import { crawlAttacks, HONEST_CRAWL } from './attacks/crawl.js'
import { BODY_DEEDS } from './body-deeds.js'

// A chain source and a headers service that mean harm: a crawl ends, with a line that says why.

const MiB = 1024 * 1024

const attacks = crawlAttacks().filter(isTested)
const result = useAttacks([...attacks, HONEST_CRAWL])

test('an honest source', () => {
  expect(result(HONEST_CRAWL).end).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('admitted 11 mints'),
  })
})

test.each(attacks.map((attack) => [nameOf(attack), attack] as const))('%s', (_, attack) => {
  const came = result(attack)
  const isBody = Object.keys(BODY_DEEDS).includes(attack.deed)
  expectBounded(came, { maxSent: isBody ? 16 * MiB : 100 * MiB })
  expect(came.requests.length).toBeLessThanOrEqual(20_000)
})
