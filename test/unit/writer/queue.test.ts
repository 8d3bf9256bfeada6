import { setImmediate as nextLoop } from 'node:timers/promises'
import { vi } from 'vitest'
import { steadyTime } from '../../../backend/src/protocol/monotonic.js'
import {
  decide,
  type Outcome,
  SharedNumber,
  submissionPlace,
  type Task,
  WriteQueue,
  withPatience,
} from '../../../backend/src/writer/queue.js'

const MiB = 1024 * 1024

/** A queue whose commits are noted, as the results of their tasks. */
function noted(): { queue: WriteQueue; commits: unknown[][] } {
  const commits: unknown[][] = []
  const queue = new WriteQueue((tasks: Task[]): Outcome[] => {
    const outcomes = tasks.map(({ run }): Outcome => {
      try {
        return { done: run() }
      } catch (error) {
        return { failed: error }
      }
    })
    commits.push(outcomes.map((each) => ('done' in each ? each.done : 'failed')))
    return outcomes
  })
  return { queue, commits }
}

test('writes that come together share a commit, and one that fails fails alone', async () => {
  const { queue, commits } = noted()
  const failure = new Error('no')
  const all = await Promise.allSettled([
    queue.add(() => 1),
    queue.add(() => {
      throw failure
    }),
    queue.add(() => 3),
  ])
  expect(all).toEqual([
    { status: 'fulfilled', value: 1 },
    { status: 'rejected', reason: failure },
    { status: 'fulfilled', value: 3 },
  ])
  expect(commits).toEqual([[1, 'failed', 3]])
})

test('a commit that fails fails all of its writes, and the next one is tried', async () => {
  let fails = true
  const queue = new WriteQueue((tasks) => {
    if (fails) throw new Error('disk full')
    return tasks.map(({ run }) => ({ done: run() }))
  })
  const all = await Promise.allSettled([queue.add(() => 1), queue.add(() => 2)])
  expect(all.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  fails = false
  expect(await queue.add(() => 3)).toBe(3)
})

test('the highest priority goes first, and of equals the first to come', async () => {
  const { queue, commits } = noted()
  const add = (name: string, priority?: number): Promise<string> =>
    queue.add(() => name, priority === undefined ? {} : { priority })
  await Promise.all([add('late', -5), add('one', -2), add('two', -2), add('now')])
  expect(commits).toEqual([['now', 'one', 'two', 'late']])
})

test('a heavy write has a commit of its own, and light ones go on sharing theirs', async () => {
  const { queue, commits } = noted()
  const add = (name: string, weight: number): Promise<string> => queue.add(() => name, { weight })
  await Promise.all([
    ...[add('a', 10), add('heavy', 0.6 * MiB), add('b', 0.4 * MiB), add('c', 0.4 * MiB), add('d', 0.4 * MiB)],
    ...Array.from({ length: 70 }, (_, n) => add(`small ${n}`, 1)),
  ])
  expect(commits.map((group) => group.length)).toEqual([64, 1, 10])
  expect(commits[0]?.slice(0, 4)).toEqual(['a', 'b', 'c', 'small 0'])
  expect(commits[1]).toEqual(['heavy'])
  expect(commits[2]?.[0]).toEqual('d')
})

test('nothing begins while the queue is held', async () => {
  const { queue, commits } = noted()
  queue.hold()
  const added = queue.add(() => 1)
  await nextLoop()
  expect(commits).toEqual([])
  queue.release()
  await added
  expect(commits).toEqual([[1]])
  await queue.idle()
})

describe('patience', () => {
  let now: number
  beforeEach(() => {
    now = performance.now()
    vi.spyOn(performance, 'now').mockImplementation(() => now)
  })
  afterEach(() => {
    vi.restoreAllMocks()
  })

  test('a write that waits behind a long one is withdrawn, and never begins', async () => {
    const { queue, commits } = noted()
    const since = new SharedNumber()
    queue.hold()
    since.value = steadyTime()
    now += 600
    const withdrawn = withPatience((claim) => queue.add(() => 'withdrawn', { claim }), {
      patience: 20,
      since,
    })
    await expect(withdrawn).rejects.toMatchObject({ code: 'WRITER_BUSY' })
    since.value = 0
    queue.release()
    await queue.add(() => 'other')
    expect(commits).toEqual([['other']])
  })

  test('a write that waits for many short ones is not withdrawn', async () => {
    const { queue } = noted()
    const since = new SharedNumber()
    queue.hold()
    const written = withPatience((claim) => queue.add(() => 'written', { claim }), { patience: 10, since })
    for (let n = 0; n < 10; n++) {
      since.value = steadyTime()
      now += 10
      await nextLoop()
      since.value = 0
    }
    queue.release()
    expect(await written).toBe('written')
  })

  test('what has begun cannot be withdrawn, and what was withdrawn cannot begin', () => {
    const claim = new SharedArrayBuffer(4)
    expect([decide(claim, 1), decide(claim, 2), decide(claim, 1)]).toEqual([true, false, false])
  })
})

test('of submissions the light one goes first, unless the heavy one has waited; clients take turns', () => {
  const priority = (submitted: { bytes: number; ahead?: number }): number =>
    submissionPlace(submitted).priority ?? 0
  expect(priority({ bytes: 300 })).toBeGreaterThan(priority({ bytes: 300_000 }) + 5000)
  expect(priority({ bytes: 300 })).toBeGreaterThan(priority({ bytes: 300, ahead: 1 }) + 1000)
  expect(priority({ bytes: 300 }) - priority({ bytes: 64 * MiB, ahead: 100 })).toBeLessThan(20_000)
  expect(submissionPlace({ bytes: 300 })).toMatchObject({ weight: 300, patience: 2000 })
})
