import { setImmediate } from 'node:timers/promises'
import { jest } from '@jest/globals'
import { Retries } from '../../../../src/chain/sources/retries.js'
import { WorkQueue } from '../../../../src/chain/sources/work-queue.js'

async function* listOf<Item>(...items: Item[]): AsyncGenerator<Item> {
  yield* items
}

function queueOf(options: { parallel?: number; follow?: (task: string) => string[] }): {
  queue: WorkQueue<string>
  performed: string[]
  most: () => number
  stop: AbortController
} {
  const { parallel = 1, follow = () => [] } = options
  const performed: string[] = []
  const stop = new AbortController()
  let now = 0
  let most = 0
  const queue = new WorkQueue<string>({
    parallel,
    signal: stop.signal,
    async perform(task) {
      most = Math.max(most, ++now)
      await setImmediate()
      performed.push(task)
      for (const each of follow(task)) queue.push(each)
      now--
    },
  })
  return { queue, performed, most: () => most, stop }
}

describe('a work queue', () => {
  test('performs what a task leads to before the rest of a list, depth first', async () => {
    const { queue, performed } = queueOf({
      follow: (task) => (task.length < 3 && task.startsWith('a') ? [`${task}x`, `${task}y`] : []),
    })
    await queue.run(listOf('a', 'b'))
    expect(performed).toEqual(['a', 'ay', 'ayy', 'ayx', 'ax', 'axy', 'axx', 'b'])
  })

  test('performs several at once, and ends when nothing is left', async () => {
    const { queue, performed, most } = queueOf({
      parallel: 4,
      follow: (task) => (task.length < 6 ? [`${task}x`, `${task}y`] : []),
    })
    await queue.run(listOf('a'))
    expect(new Set(performed).size).toBe(63)
    expect(performed).toHaveLength(63)
    expect(most()).toBe(4)
    expect(queue.length).toBe(0)
  })

  test('reads no further in a list than it performs', async () => {
    let read = 0
    const endless = async function* (): AsyncGenerator<string> {
      for (;;) yield String(read++)
    }
    const { queue, performed, stop } = queueOf({
      parallel: 2,
      follow(task) {
        if (task === '9') stop.abort()
        return []
      },
    })
    await queue.run(endless())
    expect(read).toBeLessThanOrEqual(performed.length + 2)
  })

  test('drops what does not fit, and says so', async () => {
    const { queue } = queueOf({})
    for (let at = 0; at < 10_000; at++) queue.push(String(at))
    expect(queue.hasDropped).toBe(false)
    queue.push('one more')
    expect(queue.hasDropped).toBe(true)
    expect(queue.length).toBe(10_000)
  })

  test('ends with the error of a list that cannot be read, after what was begun', async () => {
    const failing = async function* (): AsyncGenerator<string> {
      yield 'a'
      throw new Error('the store is away')
    }
    const { queue, performed } = queueOf({ parallel: 3 })
    await expect(queue.run(failing())).rejects.toThrow('the store is away')
    expect(performed).toEqual(['a'])
  })

  test('says when something is pushed', async () => {
    const { queue } = queueOf({})
    const pushed = queue.pushed(3_600_000)
    queue.push('a')
    await pushed
    expect(queue.length).toBe(1)
  })
})

describe('retries', () => {
  beforeEach(() => {
    jest.useFakeTimers({ now: 1_000_000 })
  })
  afterEach(() => {
    jest.useRealTimers()
  })

  test('come after pauses that double, up to six hours', () => {
    const retries = new Retries<string>(1000)
    const pauses: number[] = []
    for (let times = 0; times < 30; times++) {
      retries.failed('a', { task: 'a', why: 'no', isPaused: true })
      const since = Date.now()
      expect(retries.due()).toEqual([])
      for (let step = 1000; retries.isWaiting('a'); step = 1000) jest.advanceTimersByTime(step)
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
      jest.advanceTimersByTime(32_000)
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
    jest.advanceTimersByTime(32_000)
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
