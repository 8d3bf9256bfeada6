import fc from 'fast-check'
import {
  type Predecessor,
  placement,
  predecessorsOf,
  successorOf,
} from '../../../backend/src/protocol/ordinal-flow.js'

const OUT = (vout: number) => ({ kind: 'output', vout })
const IN = (input: number) => ({ kind: 'input', input })
const BURNT = { kind: 'burnt' }
const NONE = { kind: 'none' }
const UNKNOWN = { kind: 'unknown' }
const MAX = Number.MAX_SAFE_INTEGER

/** What is said of one output; of one that is not there, that it continues nothing. */
function predecessorAt(flow: Parameters<typeof predecessorsOf>[0] & { output: number }): Predecessor {
  return predecessorsOf(flow)[flow.output] ?? { kind: 'none' }
}

describe('the successor', () => {
  test.each([
    ['in the first output', [1], [1], 0, OUT(0)],
    ['behind a larger input', [1000, 1], [1000, 1], 1, OUT(1)],
    ['past zero-value outputs', [1, 1], [0, 1, 0, 0, 1], 1, OUT(4)],
    ['burnt in a larger output', [1, 500], [501], 0, BURNT],
    ['burnt at the start of a larger output', [5, 1, 9], [5, 10], 1, BURNT],
    ['burnt in the fee', [5, 1], [5], 1, BURNT],
    ['though a later input is not known', [1, undefined], [1], 0, OUT(0)],
    ['unknown behind an input that is not known', [undefined, 1], [1, 1], 1, UNKNOWN],
    ['unknown behind more inputs than are known', [], [1, 1], 2, UNKNOWN],
    ['at the largest offset', [MAX, 1], [MAX, 1], 1, OUT(1)],
    ['unknown past 2^53', [MAX, MAX, 1], [MAX, MAX, 1], 2, UNKNOWN],
    ['burnt in an output that ends past 2^53', [MAX, 1], [2, MAX, 1], 1, BURNT],
  ])('is %s', (_, inputValues, outputValues, input, expected) => {
    expect(successorOf({ inputValues, outputValues, input })).toEqual(expected)
  })
})

describe('the predecessor', () => {
  test.each([
    ['the first input', [1], [1], 0, IN(0)],
    ['behind a larger input', [1000, 1], [1000, 1], 1, IN(1)],
    ['past zero-value inputs', [0, 1, 0, 0, 1], [1, 1], 1, IN(4)],
    ['none for an output of 2', [2], [2], 0, NONE],
    ['none out of a larger input', [1000], [1, 1], 1, NONE],
    ['none at the start of a larger input', [1, 1000], [1, 1], 1, NONE],
    ['though a later input is not known', [1, undefined], [1], 0, IN(0)],
    ['unknown where its own input is', [undefined], [1], 0, UNKNOWN],
    ['unknown behind an input that is', [undefined, 1], [1, 1], 1, UNKNOWN],
    ['none, though an input past it is not known', [3, undefined], [1, 1], 1, NONE],
    ['unknown where the next input may be empty', [1, undefined, 1], [1, 1], 1, UNKNOWN],
    ['unknown past 2^53', [MAX, MAX, 1], [MAX, MAX, 1], 2, UNKNOWN],
    ['at the largest offset', [MAX, 1], [MAX, 1], 1, IN(1)],
  ])('is %s', (_, inputValues, outputValues, output, expected) => {
    expect(predecessorAt({ inputValues, outputValues, output })).toEqual(expected)
  })
})

describe('the inputs that place an output', () => {
  /** How many there are: all, where they do not reach it. */
  function placingInputs({
    inputValues,
    ...place
  }: Parameters<typeof placement>[0] & { inputValues: readonly (number | undefined)[] }): number {
    const last = inputValues.findIndex(placement(place))
    return last === -1 ? inputValues.length : last + 1
  }

  test.each([
    ['its own 1-sat coin', [1, 900], [1, 800], 0, 1],
    ['the larger one that it comes out of', [5, 1000, 7], [5, 3, 1], 2, 2],
    ['the one that starts there though it is larger', [5, 1000, 7], [5, 1], 1, 2],
    ['zero-value inputs on the way', [0, 3, 0, 0, 1, 0], [3, 1], 1, 5],
    ['those behind one that is not known', [1, undefined, 1, 1], [1, 1, 1], 1, 3],
    ['no more than one that reaches it whatever an earlier one holds', [undefined, 5, 1], [1, 1], 1, 2],
    ['all past 2^53', [MAX, MAX, 1, 1], [MAX, MAX, 1], 2, 4],
    ['those up to the largest offset', [MAX, MAX, 1], [MAX, 1], 1, 2],
  ])('are %s', (_, inputValues, outputValues, output, expected) => {
    expect(placingInputs({ inputValues, outputValues, output })).toBe(expected)
  })

  const value = fc.constantFrom(0, 1, 1, 1, 2, 5)
  const flow = fc.record({
    pairs: fc.array(fc.tuple(value, fc.boolean()), { maxLength: 10 }),
    outputValues: fc.array(value, { minLength: 1, maxLength: 10 }),
    at: fc.nat(),
  })

  test('are what the answer takes, and with one fewer it is not known', () => {
    fc.assert(
      fc.property(flow, ({ pairs, outputValues, at }) => {
        const inputValues = pairs.map(([satoshis]) => satoshis)
        const output = at % outputValues.length
        fc.pre(outputValues[output] === 1)
        const count = placingInputs({ inputValues, outputValues, output })
        const upTo = (known: number) => inputValues.map((satoshis, i) => (i < known ? satoshis : undefined))
        const answer = (values: (number | undefined)[]) =>
          predecessorAt({ inputValues: values, outputValues, output })
        expect(answer(upTo(count))).toEqual(answer(inputValues))
        if (count > 0) expect(answer(upTo(count - 1))).toEqual(UNKNOWN)
      }),
    )
  })

  test('are never too few where some are not known', () => {
    fc.assert(
      fc.property(flow, ({ pairs, outputValues, at }) => {
        const output = at % outputValues.length
        const inputValues = pairs.map(([satoshis]) => satoshis)
        const partial = pairs.map(([satoshis, known]) => (known ? satoshis : undefined))
        const count = placingInputs({ inputValues, outputValues, output })
        expect(placingInputs({ inputValues: partial, outputValues, output })).toBeGreaterThanOrEqual(count)
      }),
    )
  })
})

test('back and forth agree', () => {
  const values = fc.array(fc.constantFrom(0, 1, 1, 1, 2, 5), { maxLength: 12 })
  fc.assert(
    fc.property(values, values, (inputValues, outputValues) => {
      for (const [input, value] of inputValues.entries()) {
        const successor = value === 1 ? successorOf({ inputValues, outputValues, input }) : BURNT
        const found = 'vout' in successor ? successor.vout : undefined
        for (const output of outputValues.keys()) {
          const predecessor = predecessorAt({ inputValues, outputValues, output })
          const isMine = predecessor.kind === 'input' && predecessor.input === input
          expect(isMine).toBe(output === found)
        }
      }
    }),
  )
})

test('what is not known never turns one answer into another', () => {
  const value = fc.constantFrom(0, 1, 1, 2)
  const inputs = fc.array(fc.tuple(value, fc.boolean()), { minLength: 1, maxLength: 8 })
  fc.assert(
    fc.property(inputs, fc.array(value, { maxLength: 8 }), fc.nat(), (pairs, outputValues, at) => {
      const full = pairs.map(([satoshis]) => satoshis)
      const partial = pairs.map(([satoshis, known]) => (known ? satoshis : undefined))
      const input = at % pairs.length
      const output = at % Math.max(outputValues.length, 1)
      for (const [guess, truth] of [
        [
          successorOf({ inputValues: partial, outputValues, input }),
          successorOf({ inputValues: full, outputValues, input }),
        ],
        [
          predecessorAt({ inputValues: partial, outputValues, output }),
          predecessorAt({ inputValues: full, outputValues, output }),
        ],
      ] as const) {
        if (guess.kind !== 'unknown') expect(guess).toEqual(truth)
      }
    }),
  )
})
