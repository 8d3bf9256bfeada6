import { setImmediate as nextLoop } from 'node:timers/promises'
import { jest } from '@jest/globals'
import { RequestCoalescer } from '../../../backend/src/storage/read/request-coalescer.js'

// How long an answer takes is the test's to say, not the machine's.
beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] })
})

afterEach(() => {
  jest.useRealTimers()
})

/** A database that answers when the test says so, and records each batch. */
function asked(batchSize = Number.POSITIVE_INFINITY) {
  const calls: number[][] = []
  const answers: ((error?: Error) => void)[] = []
  const coalescer = new RequestCoalescer<number, string>({
    batchSize,
    query: (questions) => {
      calls.push(questions)
      return new Promise((answer, fail) => {
        answers.push((error) =>
          error ? fail(error) : answer(questions.map((each) => `the answer to ${each}`)),
        )
      })
    },
  })
  return { coalescer, calls, answers }
}

test('calls that come during a query join the next batch', async () => {
  const { coalescer, calls, answers } = asked()
  const first = [coalescer.ask(1), coalescer.ask(2)]
  await nextLoop()
  expect(calls).toEqual([[1, 2]])
  const second = [coalescer.ask(3), coalescer.ask(4)]
  await nextLoop()
  expect(calls).toEqual([[1, 2]])
  answers[0]?.()
  expect(await Promise.all(first)).toEqual(['the answer to 1', 'the answer to 2'])
  await nextLoop()
  expect(calls).toEqual([
    [1, 2],
    [3, 4],
  ])
  answers[1]?.()
  expect(await Promise.all(second)).toEqual(['the answer to 3', 'the answer to 4'])
})

test('as many as go at once wait for no answer', async () => {
  const { coalescer, calls, answers } = asked(2)
  const all = [1, 2, 3, 4, 5].map((each) => coalescer.ask(each))
  await nextLoop()
  expect(calls).toEqual([
    [1, 2],
    [3, 4],
  ])
  answers[0]?.()
  answers[1]?.()
  await Promise.all(all.slice(0, 4))
  await nextLoop()
  expect(calls.at(-1)).toEqual([5])
  answers[2]?.()
  expect(await all[4]).toBe('the answer to 5')
})

test('an answer that does not come keeps nobody else waiting', async () => {
  const { coalescer, calls, answers } = asked()
  const stuck = coalescer.ask(1)
  await nextLoop()
  const next = coalescer.ask(2)
  expect(calls).toEqual([[1]])
  jest.runAllTimers()
  await nextLoop()
  expect(calls).toEqual([[1], [2]])
  answers[1]?.()
  expect(await next).toBe('the answer to 2')
  answers[0]?.()
  expect(await stuck).toBe('the answer to 1')
})

test('an error goes to the callers of its batch, and to nobody after them', async () => {
  const { coalescer, answers } = asked()
  const both = [coalescer.ask(1), coalescer.ask(2)]
  await nextLoop()
  answers[0]?.(new Error('the database is away'))
  const ends = await Promise.allSettled(both)
  expect(ends.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  const next = coalescer.ask(3)
  await nextLoop()
  answers[1]?.()
  expect(await next).toBe('the answer to 3')
})
