import { jest } from '@jest/globals'
import { MemoryStore } from 'express-rate-limit'
import fc from 'fast-check'
import { LeasedCounts, SharedCounts } from '../../../../src/server/workers/read-counts.js'

const MINUTE = 60_000
const CLIENT = '192.0.2.1'

beforeEach(() => void jest.useFakeTimers())
afterEach(() => void jest.useRealTimers())

/** Readers that count together, and how often they asked for more. */
function readersOf({ rate, readers }: { rate: number; readers: number }) {
  const store = new MemoryStore()
  store.init({ windowMs: MINUTE } as Parameters<MemoryStore['init']>[0])
  const shared = new SharedCounts({ store, rate, readers })
  const asked: string[] = []
  const counts = Array.from(
    { length: readers },
    () =>
      new LeasedCounts({
        rate,
        ask(client) {
          asked.push(client)
          return shared.grant(client)
        },
        giveBack: (client, unused) => void shared.takeBack(client, unused),
      }),
  )
  const isAllowed = async (reader: number, client = CLIENT): Promise<boolean> => {
    const hits = await counts[reader]?.increment(client)
    return hits !== undefined && hits.totalHits <= rate
  }
  /** How many of so many reads are allowed, which begin at once. */
  const allowed = async (at: number[]): Promise<number> =>
    (await Promise.all(at.map((reader) => isAllowed(reader)))).filter(Boolean).length
  return { counts, store, asked, allowed, isAllowed }
}

test('however reads are spread over readers, exactly as many as the limit are allowed', async () => {
  const spread = fc.record({
    rate: fc.integer({ min: 1, max: 300 }),
    rounds: fc.array(fc.array(fc.nat(2), { maxLength: 120 }), { minLength: 1, maxLength: 4 }),
  })
  await fc.assert(
    fc.asyncProperty(spread, async ({ rate, rounds }) => {
      const { allowed } = readersOf({ rate, readers: 3 })
      let sum = 0
      for (const round of rounds) {
        sum += await allowed(round)
        expect(sum).toBeLessThanOrEqual(rate)
      }
      // What was granted and not used comes back, and any reader can allow it.
      await jest.advanceTimersByTimeAsync(3000)
      for (let left = rate - sum; left > 0; left--) {
        expect(await allowed([left % 3])).toBe(1)
        await jest.advanceTimersByTimeAsync(left % 40 === 1 ? 3000 : 0)
        sum++
      }
      await jest.advanceTimersByTimeAsync(3000)
      expect(await allowed([0, 1, 2])).toBe(0)
      expect(sum).toBe(rate)
    }),
    { numRuns: Number(process.env.RUNS ?? 20) },
  )
})

test('most reads ask nobody, and a client over its limit asks once a second', async () => {
  const { allowed, asked } = readersOf({ rate: 6000, readers: 2 })
  await allowed(new Array<number>(640).fill(0))
  expect(asked.length).toBeLessThanOrEqual(20)
  const few = readersOf({ rate: 2, readers: 2 })
  expect(await few.allowed(new Array<number>(100).fill(1))).toBe(2)
  expect(few.asked).toHaveLength(3)
  await jest.advanceTimersByTimeAsync(1500)
  expect(await few.allowed(new Array<number>(100).fill(1))).toBe(0)
  expect(few.asked).toHaveLength(4)
})

test('a reader says what is left as one process would, and starts again in the next minute', async () => {
  const { counts, isAllowed } = readersOf({ rate: 5, readers: 2 })
  const now = Date.now()
  for (let read = 1; read <= 6; read++) {
    const hits = await counts[read % 2]?.increment(CLIENT)
    expect(hits).toEqual({ totalHits: read, resetTime: new Date(now + MINUTE) })
  }
  expect(await isAllowed(0, '192.0.2.2')).toBe(true)
  await jest.advanceTimersByTimeAsync(MINUTE + 1)
  expect(await isAllowed(0)).toBe(true)
})

test('what a client did not use in one minute is not returned in the next', async () => {
  const { counts, store, allowed } = readersOf({ rate: 100, readers: 1 })
  await allowed([0])
  await jest.advanceTimersByTimeAsync(MINUTE - 500)
  await counts[0]?.increment(CLIENT)
  await jest.advanceTimersByTimeAsync(600)
  for (let read = 0; read < 3; read++) await store.increment(CLIENT)
  await jest.advanceTimersByTimeAsync(5000)
  expect((await store.get(CLIENT))?.totalHits).toBe(3)
})
