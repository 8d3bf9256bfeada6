import { jest } from '@jest/globals'
import { WriteLock } from '../../../../src/server/store/write-lock.js'
import {
  submissionPriority,
  WriteGroups,
  WritePace,
} from '../../../../src/server/submission/submission-queue.js'

const SMALL = { priority: -1, weight: 1000 }
const KiB = 1024

/** Groups of texts, each of which is written as its own length; some fail. */
function groupsOf({
  failing = [] as string[],
  compatible = undefined as ((unit: string) => boolean) | undefined,
  pace = undefined as WritePace | undefined,
} = {}) {
  const lock = new WriteLock()
  const written: string[][] = []
  const groups = new WriteGroups<string, number>({
    lock,
    ...(pace && { pace }),
    write: async (units) => {
      await new Promise(setImmediate)
      written.push(units)
      const failed = units.find((unit) => failing.includes(unit))
      if (failed !== undefined) throw new Error(`${failed} fails`)
      return units.map(({ length }) => length)
    },
    ...(compatible && { compatible: (_first: string, others: string[]) => others.filter(compatible) }),
  })
  /** Runs while something else has the lock, so that all wait. */
  const together = async (start: () => Promise<number>[]): Promise<PromiseSettledResult<number>[]> => {
    let open = (): void => {}
    const held = lock.run(
      () =>
        new Promise<void>((resolve) => {
          open = resolve
        }),
    )
    await new Promise(setImmediate)
    const all = Promise.allSettled(start())
    open()
    await held
    return await all
  }
  return { lock, groups, written, together }
}

const valuesOf = (results: PromiseSettledResult<number>[]): unknown[] =>
  results.map((result) => (result.status === 'fulfilled' ? result.value : String(result.reason)))

test('units that wait together share one write, by priority, and each gets its own result', async () => {
  const { groups, written, together } = groupsOf()
  const results = await together(() => [
    groups.run('a', { ...SMALL, priority: -3 }),
    groups.run('bb', { ...SMALL, priority: -2 }),
    groups.run('ccc', SMALL),
  ])
  expect(valuesOf(results)).toEqual([1, 2, 3])
  expect(written).toEqual([['ccc', 'bb', 'a']])
})

test('one that comes alone is written alone, at once', async () => {
  const { groups, written } = groupsOf()
  expect(await groups.run('a', SMALL)).toBe(1)
  expect(written).toEqual([['a']])
})

test('if a shared write fails, each is written alone, and only the one at fault is refused', async () => {
  const { groups, written, together } = groupsOf({ failing: ['bb'] })
  const results = await together(() => ['a', 'bb', 'ccc'].map((unit) => groups.run(unit, SMALL)))
  expect(valuesOf(results)).toEqual([1, 'Error: bb fails', 3])
  expect(written).toEqual([['a', 'bb', 'ccc'], ['a'], ['bb'], ['ccc']])
})

test('units that cannot share a write, heavy ones, and too many are written in further writes', async () => {
  const { groups, written, together } = groupsOf({ compatible: (unit) => unit !== 'other' })
  const heavy = { priority: -9, weight: 900 * KiB }
  const some = Array.from({ length: 70 }, (_, index) => `unit ${index}`)
  const results = await together(() => [
    groups.run('other', { ...SMALL, priority: -8 }),
    groups.run('heavy', heavy),
    ...some.map((unit) => groups.run(unit, SMALL)),
  ])
  expect(results.every(({ status }) => status === 'fulfilled')).toBe(true)
  expect(written.map(({ length }) => length)).toEqual([64, 6, 1, 1])
  expect(written.slice(2)).toEqual([['other'], ['heavy']])
})

test('a write takes no more than so many bytes together', async () => {
  const { groups, written, together } = groupsOf()
  await together(() => ['a', 'b', 'c'].map((unit) => groups.run(unit, { priority: -1, weight: 500 * KiB })))
  expect(written).toEqual([['a', 'b'], ['c']])
})

test('while the index is incomplete, all that wait are refused', async () => {
  const { lock, groups, written, together } = groupsOf()
  const results = await together(() => {
    lock.assertIndexComplete = () => {
      throw new Error('not ready')
    }
    return ['a', 'b'].map((unit) => groups.run(unit, SMALL))
  })
  expect(valuesOf(results)).toEqual(['Error: not ready', 'Error: not ready'])
  expect(written).toEqual([])
})

describe('a submission', () => {
  beforeEach(() => {
    jest.useFakeTimers()
  })
  afterEach(() => {
    jest.useRealTimers()
  })

  test.each([
    ['large', { bytes: 128 * KiB * KiB }],
    ['behind others of its client', { bytes: KiB, ahead: 24 }],
    ['with much that waits for it', { bytes: KiB, behind: 20_000 }],
  ])('that is %s goes after a small one that comes soon, and before one that comes late', (_, heavy) => {
    const first = submissionPriority(heavy)
    jest.advanceTimersByTime(1000)
    expect(submissionPriority({ bytes: KiB })).toBeGreaterThan(first)
    jest.advanceTimersByTime(20_000)
    expect(submissionPriority({ bytes: KiB })).toBeLessThan(first)
  })
})

describe('a write', () => {
  let now = 0
  let reads = 0
  const pace = (): WritePace => {
    jest.spyOn(performance, 'now').mockImplementation(() => now)
    return new WritePace(() => reads)
  }
  /** A second in which so many reads are answered, and a write starts every few milliseconds. */
  const second = (paced: WritePace, answered: number): number => {
    let longest = 0
    for (let at = 0; at < 100; at++) {
      now += 10
      reads += answered / 100
      longest = Math.max(longest, paced.wait())
      paced.start()
    }
    return longest
  }
  afterEach(() => {
    jest.restoreAllMocks()
    now = 0
    reads = 0
  })

  test('waits for none before while few reads are answered', () => {
    const paced = pace()
    for (let at = 0; at < 10; at++) expect(second(paced, 500)).toBe(0)
  })

  test('starts a fifth of a second after the one before while many are answered, and not when that is over', () => {
    const paced = pace()
    second(paced, 600)
    expect(second(paced, 600)).toBeGreaterThan(150)
    second(paced, 0)
    expect(second(paced, 0)).toBe(0)
  })

  test('does not wait for what was long ago', () => {
    const paced = pace()
    second(paced, 600)
    now += 60_000
    reads += 1_000_000
    expect(paced.wait()).toBe(0)
  })

  test('that waits is shared by what comes meanwhile', async () => {
    const paced = pace()
    second(paced, 600)
    second(paced, 600)
    jest.spyOn(paced, 'wait').mockReturnValueOnce(1)
    const { groups, written } = groupsOf({ pace: paced })
    const first = groups.run('a', SMALL)
    await new Promise(setImmediate)
    expect(await Promise.all([first, groups.run('bb', SMALL)])).toEqual([1, 2])
    expect(written).toEqual([['a', 'bb']])
  })

  test('starts at once when as many wait as can share it', async () => {
    const paced = pace()
    jest.spyOn(paced, 'wait').mockReturnValue(60_000)
    const { groups, written } = groupsOf({ pace: paced })
    const all = Array.from({ length: 64 }, (_, index) => groups.run(`unit ${index}`, SMALL))
    await Promise.all(all)
    expect(written).toHaveLength(1)
  })
})
