import { count, duration, percent, rate } from '../../../../src/explorer/mine-page/figures.js'

test.each([
  [0, '0'],
  [1234567.4, '1,234,567'],
])('%d hashes are %s', (value, text) => {
  expect(count(value)).toBe(text)
})

test.each([
  [999_999, '999,999 a second'],
  [1_000_000, '1.0 million a second'],
  [12_345_678, '12.3 million a second'],
])('%d hashes a second are %s', (value, text) => {
  expect(rate(value)).toBe(text)
})

test.each([
  [0, '0 %'],
  [0.634, '63 %'],
  // Nothing is certain.
  [0.9999, '99 %'],
])('%d of 1 is %s', (value, text) => {
  expect(percent(value)).toBe(text)
})

test.each([
  [0.2, 'about a second'],
  [1.4, 'about a second'],
  [1.5, '2 seconds'],
  [119, '119 seconds'],
  [120, '2 minutes'],
  [7200, '2 hours'],
  [172_800, '2 days'],
  [1e9, '32 years'],
  [1e15, '31,688,088 years'],
  [Number.POSITIVE_INFINITY, 'unknown'],
])('%d seconds are %s', (value, text) => {
  expect(duration(value)).toBe(text)
})
