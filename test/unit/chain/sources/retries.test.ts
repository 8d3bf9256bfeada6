import { vi } from 'vitest'
import { Retries } from '../../../../src/chain/sources/retries.js'

describe('retries', () => {
  beforeEach(() => {
    vi.useFakeTimers({ now: 1_000_000 })
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  test('come after pauses that double, up to six hours', () => {
    const retries = new Retries<string>(1000)
    const pauses: number[] = []
    for (let times = 0; times < 30; times++) {
      retries.failed('a', { task: 'a', why: 'no', isPaused: true })
      const since = Date.now()
      expect(retries.due()).toEqual([])
      while (retries.isWaiting('a')) vi.advanceTimersByTime(1000)
      expect(retries.due()).toEqual(['a'])
      pauses.push(Date.now() - since)
    }
    expect(pauses.slice(0, 4)).toEqual([1000, 2000, 4000, 8000])
    expect(Math.max(...pauses)).toBe(21_600_000)
  })

  test('come with a new round while they are few', () => {
    const retries = new Retries<string>(1000)
    const fail = (): void => retries.failed('a', { task: 'a', why: 'no', isPaused: true })
    for (let times = 0; times < 6; times++) {
      vi.advanceTimersByTime(32_000)
      fail()
      const { nextDue } = retries
      for (let early = 0; early < 9; early++) {
        expect(retries.due()).toEqual([])
        retries.newRound()
        expect(retries.due()).toEqual(['a'])
        expect(retries.isWaiting('a')).toBe(false)
        fail()
      }
      // What was tried early makes no pause longer.
      expect(retries.nextDue).toBe(nextDue)
    }
    vi.advanceTimersByTime(32_000)
    fail()
    retries.newRound()
    expect(retries.due()).toEqual([])
    expect(retries.nextDue).toBe(performance.now() + 64_000)
  })

  test('forget what succeeded, and the oldest of very many', () => {
    const retries = new Retries<number>(0)
    for (let at = 0; at <= 10_000; at++)
      retries.failed(String(at), { task: at, why: `${at}`, isPaused: false })
    expect(retries.reasons).toHaveLength(10_000)
    expect(retries.reasons).not.toContain('0')
    retries.succeeded('1')
    expect(retries.due()).toEqual([])
    retries.newRound()
    expect(retries.due()).not.toContain(1)
    expect(retries.due()).toContain(2)
  })
})
