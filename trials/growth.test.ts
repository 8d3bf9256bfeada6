import { growthOf } from './growth.js'

const MiB = 2 ** 20

test.each<[string, number[], boolean]>([
  ['stays', [100, 101, 99, 100, 102, 100, 99, 101, 100], false],
  ['grows, and stays', [100, 200, 300, 400, 400, 400, 400, 400, 400], false],
  ['grows by what the slack allows', [100, 101, 102, 120, 121, 122, 140, 141, 142], false],
  ['goes up and down', [100, 100, 100, 400, 400, 400, 300, 300, 300], false],
  ['grows and grows', [100, 110, 120, 200, 210, 220, 300, 310, 320], true],
])('what %s', (_, mebibytes, hasGrown) => {
  const samples = mebibytes.map((each) => each * MiB)
  expect(growthOf(samples, { slack: 32 * MiB }).hasGrown).toBe(hasGrown)
})

test('thirds are compared by their medians', () => {
  expect(growthOf([1, 9, 2, 3, 3, 3, 7, 8, 1], { slack: 0 }).medians).toEqual([2, 3, 7])
})
