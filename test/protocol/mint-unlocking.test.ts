import { LockingScript, TransactionSignature, UnlockingScript } from '@bsv/sdk'
import { equalBytes, toHex } from '../../backend/src/protocol/bytes.js'
import { checkMint, encodeMintUnlocking, mintPreimage } from '../../backend/src/protocol/mint.js'
import { FakeChain } from '../support/fake-chain.js'

const chain = new FakeChain()
chain.mintAll('ab')

describe('the preimage', () => {
  test.each([[60], [252 - 81], [253 - 81], [70_000]])(
    'is the one of the SDK, with %i bytes of code',
    (codeSize) => {
      const tree = new FakeChain({ codeSize })
      const spent = tree.node('')
      const { transaction } = tree.mint('x', { nodeInputPosition: 1 })
      const sdk = TransactionSignature.format({
        sourceTXID: spent.outpoint.txid,
        sourceOutputIndex: spent.outpoint.vout,
        sourceSatoshis: 1,
        transactionVersion: transaction.version,
        otherInputs: transaction.inputs.slice(0, 1).map((input) => ({
          sourceTXID: input.txid,
          sourceOutputIndex: input.vout,
          unlockingScript: UnlockingScript.fromHex(''),
          sequence: input.sequence,
        })),
        outputs: transaction.outputs.map(({ satoshis, lockingScript }) => ({
          satoshis,
          lockingScript: LockingScript.fromHex(toHex(lockingScript)),
        })),
        inputIndex: 1,
        subscript: LockingScript.fromHex(toHex(spent.lockingScript)),
        inputSequence: 0xffffffff,
        lockTime: transaction.lockTime,
        scope: 0xc1,
      })
      const ours = mintPreimage({ transaction, input: 1, spent })
      expect(equalBytes(ours, Uint8Array.from(sdk))).toBe(true)
      expect(checkMint({ transaction, input: 1, deployment: tree.deployment }).name).toBe('x')
    },
  )

  test('is none for an input that is not there, or a value that is none', () => {
    const { transaction } = chain.mint('ac', { from: chain.node('a') })
    expect(() => mintPreimage({ transaction, input: 9, spent: chain.node('a') })).toThrow(RangeError)
    expect(() =>
      mintPreimage({ transaction, input: 0, spent: { ...chain.node('a'), satoshis: 1.5 } }),
    ).toThrow(RangeError)
  })
})

test('the unlocking script is five minimal pushes', () => {
  const script = encodeMintUnlocking({
    character: 'c',
    nonce: Uint8Array.of(5),
    ownerLock: Uint8Array.of(0x81),
    trailing: new Uint8Array(),
    preimage: new Uint8Array(300),
  })
  expect(toHex(script.subarray(0, 8))).toBe('0163554f004d2c01')
})
