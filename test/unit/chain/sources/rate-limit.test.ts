import { RateLimit } from '../../../../src/chain/sources/rate-limit.js'

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

describe('one that is patient', () => {
  const { signal } = new AbortController()

  /** Passes with the turns of the loop, and so never faster than timers fire: not while this process is held up. */
  let clock = 1_000_000
  let turns: NodeJS.Timeout
  beforeEach(() => {
    turns = setInterval(() => {
      clock += 5
    }, 5)
  })
  afterEach(() => clearInterval(turns))

  /** A limit whose permits are all taken. */
  const emptied = (): RateLimit => {
    const limit = new RateLimit(50, () => clock)
    for (let taken = 0; taken < 50; taken++) limit.take()
    return limit
  }

  test('lets others go first', async () => {
    const limit = emptied()
    const order: string[] = []
    const permit = async (name: string, isPatient: boolean): Promise<void> => {
      await limit.permit({ isPatient, signal })
      order.push(name)
    }
    const patient = ['p', 'q'].map((name) => permit(name, true))
    await Promise.all([...patient, ...['a', 'b', 'c'].map((name) => permit(name, false))])
    expect(order.join('')).toBe('abcpq')
  })

  test('gets its turn, however many others there are', async () => {
    const limit = emptied()
    let isOver = false
    const others = async (): Promise<void> => {
      while (!isOver) await limit.permit({ isPatient: false, signal })
    }
    const running = [others(), others(), others()]
    for (let count = 0; count < 3; count++) await limit.permit({ isPatient: true, signal })
    isOver = true
    await Promise.all(running)
  })

  test('stops waiting when its signal aborts, and those behind it do, too', async () => {
    const limit = emptied()
    const stop = new AbortController()
    const waiting = [1, 2].map(() => limit.permit({ isPatient: true, signal: stop.signal }))
    stop.abort()
    const ends = await Promise.allSettled(waiting)
    expect(ends.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    await limit.permit({ isPatient: true, signal })
  })
})
