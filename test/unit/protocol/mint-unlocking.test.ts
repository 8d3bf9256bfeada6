import { LockingScript, TransactionSignature, UnlockingScript } from '@bsv/sdk'
import { concatBytes, equalBytes, toHex } from '../../../backend/src/protocol/bytes.js'
import { checkMint, encodeMintUnlocking, mintPreimage } from '../../../backend/src/protocol/mint.js'
import { isStrictSpend } from '../../../backend/src/protocol/mint-unlocking.js'
import { FakeChain } from '../../support/protocol/fake-chain.js'

const chain = new FakeChain()
chain.mintAll('ab')
const PLAIN = { version: 1, raw: new Uint8Array(1000) }

describe('the preimage', () => {
  test.each([60, 252 - 81, 253 - 81, 70_000])('is the one of the SDK, with %i bytes of code', (codeSize) => {
    const tree = new FakeChain({ codeSize })
    const spent = tree.node('')
    const { transaction } = tree.mint('x', { nodeInputPosition: 1 })
    const sdk = TransactionSignature.format({
      ...{ sourceTXID: spent.outpoint.txid, sourceOutputIndex: spent.outpoint.vout, sourceSatoshis: 1 },
      ...{ transactionVersion: transaction.version, lockTime: transaction.lockTime, scope: 0xc1 },
      otherInputs: transaction.inputs.slice(0, 1).map(({ txid, vout, sequence }) => ({
        ...{
          sourceTXID: txid,
          sourceOutputIndex: vout,
          sequence,
          unlockingScript: UnlockingScript.fromHex(''),
        },
      })),
      outputs: transaction.outputs.map(({ satoshis, lockingScript }) => ({
        satoshis,
        lockingScript: LockingScript.fromHex(toHex(lockingScript)),
      })),
      inputIndex: 1,
      subscript: LockingScript.fromHex(toHex(spent.lockingScript)),
      inputSequence: 0xffffffff,
    })
    const ours = mintPreimage({ transaction, input: 1, spent })
    expect(equalBytes(ours, Uint8Array.from(sdk))).toBe(true)
    expect(checkMint({ transaction, input: 1, deployment: tree.deployment }).name).toBe('x')
  })

  test('is none for an input that is not there, or a value that is none', () => {
    const spent = chain.node('a')
    const { transaction } = chain.mint('ac', { from: spent })
    expect(() => mintPreimage({ transaction, input: 9, spent })).toThrow(RangeError)
    const half = { ...spent, satoshis: 1.5 }
    expect(() => mintPreimage({ transaction, input: 0, spent: half })).toThrow(RangeError)
  })
})

test('the unlocking script is five minimal pushes', () => {
  const script = encodeMintUnlocking({
    ...{ character: 'c', nonce: Uint8Array.of(5), ownerLock: Uint8Array.of(0x81) },
    ...{ trailing: new Uint8Array(), preimage: new Uint8Array(300) },
  })
  expect(toHex(script.subarray(0, 8))).toBe('0163554f004d2c01')
})

describe('an unlocking script is strict', () => {
  const right = (character: string, nonce: Uint8Array) =>
    encodeMintUnlocking({
      ...{ character, nonce, ownerLock: new Uint8Array(), trailing: new Uint8Array(300) },
      preimage: new Uint8Array(70_000),
    })
  test('as it is written, whatever the nonce', () => {
    for (const nonce of [[], [0], [5], [0x81], new Uint8Array(76)])
      expect(isStrictSpend(PLAIN, right('c', Uint8Array.from(nonce)))).toBe(true)
  })

  const script = right('c', Uint8Array.of(1, 2))
  test.each<[string, Uint8Array]>([
    ['nothing', new Uint8Array()],
    ['four pushes', script.subarray(2)],
    ['six pushes', concatBytes(Uint8Array.of(0), script)],
    ['code behind the five', concatBytes(script, Uint8Array.of(0x61))],
    ['code instead of a push', concatBytes(Uint8Array.of(0x76), script.subarray(2))],
    ['OP_RESERVED', concatBytes(Uint8Array.of(0x50), script.subarray(2))],
    ['a push that breaks off', script.subarray(0, -1)],
    ['and one behind the five', concatBytes(script, Uint8Array.of(1))],
    ['a push of two length bytes for one', concatBytes(Uint8Array.of(0x4c, 1, 0x63), script.subarray(2))],
    ['a small number that is pushed as a byte', concatBytes(Uint8Array.of(1, 5), script.subarray(2))],
    ['minus one that is pushed as a byte', concatBytes(Uint8Array.of(1, 0x81), script.subarray(2))],
    ['nothing that is pushed with a length', concatBytes(Uint8Array.of(0x4c, 0), script.subarray(2))],
    ['a zero byte behind the character', right('c\0', Uint8Array.of(1, 2))],
    ['many of them', right('c\0\0\0\0\0\0\0\0', Uint8Array.of(1, 2))],
    ['no character', right('', Uint8Array.of(1, 2))],
    ['more bytes than nodes relay', right('c', new Uint8Array(430_000))],
  ])('and not with %s', (_, other) => expect(isStrictSpend(PLAIN, other)).toBe(false))

  test('and up to the size that nodes relay', () => {
    const most = right('c', new Uint8Array(500_000 - right('c', new Uint8Array(70_000)).length + 70_000))
    expect(most.length).toBe(500_000)
    expect(isStrictSpend(PLAIN, most)).toBe(true)
    expect(isStrictSpend({ version: 2, raw: new Uint8Array(10_000_000) }, most)).toBe(true)
    expect(isStrictSpend({ version: 2, raw: new Uint8Array(10_000_001) }, script)).toBe(false)
    for (const version of [0, 3, 0x80000000, 0xffffffff])
      expect(isStrictSpend({ ...PLAIN, version }, script)).toBe(false)
  })
})
