import { RateLimit } from '../../../src/follow/rate-limit.js'

test('lets through as many at once as in a second, and then one at a time', () => {
  const clock = { now: 1000 }
  const limit = new RateLimit(4, () => clock.now)
  expect(Array.from({ length: 7 }, () => limit.take())).toEqual([0, 0, 0, 0, 250, 500, 750])
  // Two of those that wait have been used, and no permit is lost to the wait.
  clock.now += 500
  expect(limit.take()).toBe(500)
  // After a pause it is full again, and not more than that.
  clock.now += 60_000
  expect(Array.from({ length: 6 }, () => limit.take())).toEqual([0, 0, 0, 0, 250, 500])
})

test('never lets through more than the rate and its bucket in any time', () => {
  const clock = { now: 0 }
  const limit = new RateLimit(10, () => clock.now)
  const used: number[] = []
  for (let step = 0; step < 500; step++) {
    used.push(clock.now + limit.take())
    clock.now += (step * 37) % 90
  }
  for (const from of used)
    expect(used.filter((at) => at >= from && at < from + 2000).length).toBeLessThanOrEqual(10 + 20)
})
