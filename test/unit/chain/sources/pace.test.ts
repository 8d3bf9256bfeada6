import { Pace } from '../../../../src/chain/sources/pace.js'

/** A clock that is moved by hand, and a pace of three answers in a second. */
function set() {
  const clock = { now: 0 }
  const pace = new Pace({ within: 1000, answers: 3 }, () => clock.now)
  const question = (takes: number, bytes?: number): void => {
    pace.begin()
    clock.now += takes
    if (bytes !== undefined) pace.answered(bytes)
    pace.end()
  }
  return { clock, pace, question }
}

test('is kept by answers that come fast enough, however many', () => {
  const { pace, question } = set()
  for (let count = 0; count < 20; count++) {
    question(300, 10)
    expect(pace.isKept()).toBe(true)
  }
})

test('is not kept by answers that come too slowly', () => {
  const { pace, question } = set()
  question(600, 10)
  expect(pace.isKept()).toBe(true)
  question(600, 10)
  expect(pace.isKept()).toBe(false)
})

test('is not kept where nothing comes', () => {
  const { pace, question } = set()
  question(999)
  expect(pace.isKept()).toBe(true)
  question(2)
  expect(pace.isKept()).toBe(false)
})

test('counts the time of questions that are open at once only once', () => {
  const { clock, pace } = set()
  for (let count = 0; count < 3; count++) pace.begin()
  clock.now += 600
  for (let count = 0; count < 3; count++) pace.end()
  expect(pace.isKept()).toBe(true)
})

test('does not count the time in which nothing is asked', () => {
  const { clock, pace, question } = set()
  question(500)
  clock.now += 100_000
  question(400, 10)
  expect(pace.isKept()).toBe(true)
})

test('counts a long answer as several', () => {
  const { pace, question } = set()
  question(900, 10)
  question(900, 3 * 1024 * 1024)
  expect(pace.isKept()).toBe(true)
  question(900, 10)
  expect(pace.isKept()).toBe(true)
})

test('starts over after a reset', () => {
  const { pace, question } = set()
  question(1001)
  expect(pace.isKept()).toBe(false)
  pace.reset()
  expect(pace.isKept()).toBe(true)
  question(1001)
  expect(pace.isKept()).toBe(false)
})
