/** The values of one transaction, in satoshis. `undefined` is a value that is not known. */
interface TransactionValues {
  inputValues: readonly (number | undefined)[]
  outputValues: readonly number[]
}

/** Where a 1-sat coin goes when it is spent. */
export type Successor = { kind: 'output'; vout: number } | { kind: 'burnt' } | { kind: 'unknown' }

/** Which input of its own transaction an output continues. */
export type Predecessor = { kind: 'input'; input: number } | { kind: 'none' } | { kind: 'unknown' }

/**
 * The output that an ordinal flows into (BRC-159). Its offset is the sum of the values of the inputs before it;
 * the output that starts there is the successor if it holds 1 satoshi, and else the ordinal is burnt: in a larger output, or in
 * the fee. Outputs of 0 satoshis are passed over.
 *
 * @param flow.input The index of the input that spends the ordinal; the caller has to know that it is a 1-sat coin. Only the
 * values of the inputs before it matter.
 * @returns `unknown` if one of those is not known, or if their sum exceeds 2^53, more than all coins.
 */
export function successorOf({
  inputValues,
  outputValues,
  input,
}: TransactionValues & { input: number }): Successor {
  const before = Array.from({ length: input }, (_, at) => inputValues[at] ?? Number.NaN)
  const offset = before.reduce((sum, value) => sum + value, 0)
  if (!Number.isSafeInteger(offset)) return { kind: 'unknown' }
  const received = predecessorsOf({ inputValues: [...before, 1], outputValues })
  const vout = received.findIndex((from) => from.kind === 'input' && from.input === input)
  return vout === -1 ? { kind: 'burnt' } : { kind: 'output', vout }
}

/**
 * For each output, the 1-sat input that starts exactly where the output starts (BRC-159); inputs of 0 satoshis are
 * passed over. One walk over inputs and outputs, as a transaction may have any number.
 *
 * @returns `none` if the satoshi comes out of a larger input, and for an output of any other value than 1; `unknown` if a value
 * that it depends on is not known.
 */
export function predecessorsOf({ inputValues, outputValues }: TransactionValues): Predecessor[] {
  let input = 0
  let start = 0
  let offset = 0
  return outputValues.map((satoshis): Predecessor => {
    const at = offset
    offset += satoshis
    if (satoshis !== 1) return NONE
    if (!Number.isSafeInteger(at)) return UNKNOWN
    for (; input < inputValues.length; input++) {
      const value = inputValues[input]
      if (start > at) return NONE
      if (value === undefined) return UNKNOWN
      if (start === at && value !== 0) return value === 1 ? { kind: 'input', input } : NONE
      start += value
    }
    return NONE
  })
}

/** Shared objects, as a transaction may have any number of outputs. */
const NONE: Predecessor = { kind: 'none' }
const UNKNOWN: Predecessor = { kind: 'unknown' }

/**
 * Finds the leading inputs that place an output: those up to the one that holds its first satoshi. Their values, and no fewer,
 * tell which coin it continues, or that it continues none (BRC-159).
 *
 * @param place.output The index of the output.
 * @returns Takes the values of the inputs in order, and returns for each whether the output is placed with it. An unknown value
 * counts as 0, so that there are never too few inputs.
 */
export function placement(place: {
  outputValues: readonly number[]
  output: number
}): (satoshis: number | undefined) => boolean {
  const sum = place.outputValues.slice(0, place.output).reduce((total, satoshis) => total + satoshis, 0)
  // Above 2^53, more than all coins, nothing is placed.
  const offset = Number.isSafeInteger(sum) ? sum : Number.POSITIVE_INFINITY
  let end = 0
  return (satoshis = 0) => {
    end += satoshis
    return end > offset
  }
}
