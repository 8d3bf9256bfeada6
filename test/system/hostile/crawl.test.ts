import { nameOf, tested } from './attack.js'
import { expectBounded, useAttacks } from './attacked.js'
import { crawlAttacks, HONEST_CRAWL } from './attacks/crawl.js'

// A chain source and a headers service that mean harm: a crawl ends, with a line that says why.

const MiB = 1024 * 1024
/** Of each of three transactions, 16 MiB to learn that it is long, and all of it when its turn comes: that of a submission, 72 MiB. */
const MAX_SENT = { headers: 4 * MiB, source: 3 * (16 + 72) * MiB }

const attacks = tested(crawlAttacks())
const result = useAttacks([...attacks, HONEST_CRAWL])

test('an honest source', () => {
  expect(result(HONEST_CRAWL).end).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/admitted \d+ mints/),
  })
})

test.each(attacks.map((attack) => [nameOf(attack), attack] as const))('%s', (_, attack) => {
  const came = result(attack)
  expectBounded(came, { maxSent: attack.server === 'headers' ? MAX_SENT.headers : MAX_SENT.source })
  expect(came.requests.length).toBeLessThanOrEqual(20_000)
  if (attack.deed.startsWith('answers after')) expect(came.end.stderr).toContain('stopped at --max-time')
})
