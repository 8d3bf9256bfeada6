import { Transaction } from '@bsv/sdk'
import fc from 'fast-check'
import { concatBytes, fromHex, joinBytes, toHex } from '../../../backend/src/protocol/bytes.js'
import {
  countParts,
  firstOutputs,
  outputOf,
  readTransaction,
  serialisedOutputs,
  TransactionError,
  type TransactionOutput,
} from '../../../backend/src/protocol/transaction.js'
import { bytes, mutated } from '../../support/protocol/arbitraries.js'
import { FakeChain, p2pkh } from '../../support/protocol/fake-chain.js'

const chain = new FakeChain()
const sample = chain.spend({
  inputs: [chain.madeUpCoin(), chain.madeUpCoin()],
  outputs: [
    { satoshis: 1, lockingScript: p2pkh(1) },
    { satoshis: 2_100_000_000_000_000, lockingScript: new Uint8Array(300) },
    { satoshis: 0, lockingScript: new Uint8Array() },
  ],
})

const large = chain.spend({
  inputs: Array.from({ length: 40 }, () => chain.madeUpCoin()),
  outputs: Array.from({ length: 300 }, (_, at) => ({
    ...{ satoshis: at * 2 ** 40, lockingScript: new Uint8Array(at) },
  })),
})

test.each([
  ['few', sample.raw],
  ['many', large.raw],
])('reads what the SDK reads of a transaction with %s inputs and outputs', (_, raw) => {
  const sdk = Transaction.fromHex(toHex(raw))
  const view = readTransaction(raw)
  expect(view).toMatchObject({ txid: sdk.id('hex'), version: 1, lockTime: 0, raw })
  expect(countParts(view)).toEqual({ inputs: sdk.inputs.length, outputs: sdk.outputs.length })
  const inputs = sdk.inputs.map(({ sourceTXID, sourceOutputIndex, sequence, unlockingScript }) => ({
    ...{ txid: sourceTXID, vout: sourceOutputIndex, sequence, script: unlockingScript?.toHex() },
  }))
  const read = view.inputs.map(({ txid, vout, sequence, unlockingScript }) => ({
    ...{ txid, vout, sequence, script: toHex(unlockingScript) },
  }))
  expect(read).toEqual(inputs)
  expect(view.outputs.map(({ satoshis, lockingScript }) => [satoshis, toHex(lockingScript)])).toEqual(
    sdk.outputs.map((output) => [output.satoshis, output.lockingScript.toHex()]),
  )
  expect(view.outputs).toBe(view.outputs)
})

test('of a transaction with many outputs one is read alone, or the first ones, or their bytes', () => {
  const output = (at: number) => ({ satoshis: at, lockingScript: new Uint8Array(at % 300) })
  const { raw } = chain.spend({ inputs: [], outputs: Array.from({ length: 3000 }, (_, at) => output(at)) })
  const view = readTransaction(raw)
  const ends = [0, 1, 1023, 1024, 1025, 2047, 2048, 2999]
  const alone = ends.map((vout) => outputOf(view, vout))
  const first = firstOutputs(view, 1030)
  const starts = [0, 3, 1024, 2999, 3000]
  const bytes = starts.map((from) => serialisedOutputs(view, from))
  for (const none of [3000, -1, 2 ** 32 - 1, Number.NaN]) expect(outputOf(view, none)).toBeUndefined()
  // Nothing of that has made them all.
  expect(view).toHaveProperty('madeOutputs', undefined)
  const shown = (output: TransactionOutput | undefined) =>
    output && [output.satoshis, output.lockingScript.length, toHex(output.bytes)]
  const { outputs } = readTransaction(raw)
  expect(alone.map(shown)).toEqual(ends.map((vout) => shown(outputs[vout])))
  expect(first.map(shown)).toEqual(outputs.slice(0, 1030).map(shown))
  const joined = (all: readonly TransactionOutput[]) => toHex(joinBytes(all.map((each) => each.bytes)))
  expect(bytes.map(toHex)).toEqual(starts.map((from) => joined(outputs.slice(from))))
  // And of one with few the same comes.
  const few = readTransaction(sample.raw)
  expect(shown(outputOf(few, 0))).toEqual(shown(few.outputs[0]))
  expect(toHex(serialisedOutputs(few))).toBe(joined(few.outputs))
})

test('gives views into the raw bytes, also where those are a view themselves', () => {
  const shifted = concatBytes(Uint8Array.of(9, 9, 9), sample.raw).subarray(3)
  const view = readTransaction(shifted)
  expect(view.txid).toBe(sample.txid)
  for (const { bytes: whole, lockingScript } of view.outputs) {
    expect(whole.buffer).toBe(shifted.buffer)
    expect(lockingScript.buffer).toBe(shifted.buffer)
  }
  // Varint of outputs before them, lock time after them.
  const outputs = joinBytes(view.outputs.map((output) => output.bytes))
  expect(toHex(sample.raw).endsWith(`03${toHex(outputs)}00000000`)).toBe(true)
})

const NO_INPUTS = '0100000000'

test.each([
  ['nothing', ''],
  ['an end within the inputs', '0100000001aa'],
  ['a count that the bytes cannot hold', '01000000ffffffffffffff1f00'],
  ['a count beyond 2^53', '01000000ffffffffffffffffff'],
  ['a count in more bytes than it needs', '01000000fd00000000000000'],
  ['a script longer than the rest', `${NO_INPUTS}010100000000000000fe00000001`],
  ['a value beyond 2^53', `${NO_INPUTS}01000000000000200000`],
  ['no lock time', `${NO_INPUTS}00`],
  ['bytes after the lock time', `${NO_INPUTS}000000000000`],
])('refuses %s', (_, hex) => {
  const error = catchError(() => readTransaction(fromHex(hex)))
  expect(error).toBeInstanceOf(TransactionError)
  expect(error).toMatchObject({ code: 'BAD_TRANSACTION', name: 'TransactionError' })
})

test('refuses every other bytes with the same error, or reads them', () => {
  fc.assert(
    fc.property(fc.oneof(bytes(), mutated(fc.constant(sample.raw))), (raw) => {
      const error = catchError(() => readTransaction(raw))
      if (error !== undefined) expect(error).toBeInstanceOf(TransactionError)
    }),
  )
})

function catchError(act: () => unknown): unknown {
  try {
    act()
    return undefined
  } catch (error) {
    return error
  }
}
