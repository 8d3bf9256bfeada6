import { Transaction } from '@bsv/sdk'
import { vi } from 'vitest'
import { readBeef } from '../../../backend/src/graph/read-beef.js'
import { Verification, verdictOf } from '../../../backend/src/host/verification.js'
import { beefOf, FakeChain, type FakeTransaction, OPEN_LOCK } from '../../support/protocol/fake-chain.js'

const LENGTH = 30

/** A coin that is mined, and transactions without proofs, each spending the one before; the first spends the coin. */
function unprovenChain({ firstLock = OPEN_LOCK } = {}) {
  const chain = new FakeChain()
  const coin = chain.spend({ inputs: [], outputs: [{ satoshis: 1000, lockingScript: firstLock }] })
  const parts: FakeTransaction[] = []
  for (let n = 0; n < LENGTH; n++)
    parts.push(
      chain.spend({
        inputs: [{ transaction: parts.at(-1) ?? coin, vout: 0 }],
        outputs: [{ satoshis: 1000, lockingScript: OPEN_LOCK }],
      }),
    )
  // As an engine submits what a peer sends: each with all before it.
  const beefs = parts.map((each, n) => {
    const before = parts.slice(0, n)
    return readBeef(beefOf(each, { proven: false, with: [coin, ...before], unproven: before }))
  })
  return { coin, parts, beefs }
}

/** What is found of each, and what that cost. */
async function verified(beefs: ReturnType<typeof readBeef>[], isThere: boolean) {
  const scripts = vi.spyOn(Transaction.prototype, 'verify')
  onTestFinished(() => scripts.mockRestore())
  const isValidRootForHeight = vi.fn(async () => isThere)
  const verification = new Verification()
  const verdicts = new Set<string>()
  for (const beef of beefs)
    verdicts.add(await verification.of(beef, { isValidRootForHeight, currentHeight: async () => 1e6 }))
  return {
    verdicts: [...verdicts],
    questions: isValidRootForHeight.mock.calls.length,
    scripts: scripts.mock.calls.length,
  }
}

test('a chain of unproven transactions that comes once for each of them costs each of them once', async () => {
  const { beefs } = unprovenChain()
  expect(await verified(beefs, true)).toEqual({ verdicts: ['yes'], questions: 1, scripts: LENGTH })
})

test('no script runs above a proof that the chain does not have', async () => {
  const { beefs } = unprovenChain()
  expect(await verified(beefs, false)).toEqual({ verdicts: ['no'], questions: 1, scripts: 0 })
})

test('none runs above a script that fails', async () => {
  const NEVER = Uint8Array.of(0x6a)
  const { beefs } = unprovenChain({ firstLock: NEVER })
  expect(await verified(beefs, true)).toEqual({ verdicts: ['no'], questions: 1, scripts: 1 })
})

test('what spends more than it has, or what is not there, is not valid', async () => {
  const chain = new FakeChain()
  const coin = chain.spend({ inputs: [], outputs: [{ satoshis: 1, lockingScript: OPEN_LOCK }] })
  const outputs = [{ satoshis: 2, lockingScript: OPEN_LOCK }]
  const spend = chain.spend({ inputs: [{ transaction: coin, vout: 0 }], outputs })
  const alone = chain.spend({ inputs: [], outputs })
  const beefs = [beefOf(spend, { proven: false, with: [coin] }), beefOf(alone, { proven: false })]
  expect((await verified(beefs.map(readBeef), true)).verdicts).toEqual(['no'])
})

describe('a chain tracker', () => {
  const proof = (height: number) => ({ height, root: 'ab'.repeat(32) })
  const timeout = 10_000
  const failing = {
    isValidRootForHeight: () => Promise.reject(new Error('away')),
    currentHeight: async () => 100,
  }

  test('that does not know the last blocks yet is asked again', async () => {
    const tracker = { isValidRootForHeight: async () => false, currentHeight: async () => 100 }
    const verdicts = [100, 101, 106, 107].map((height) => verdictOf(proof(height), { tracker, timeout }))
    expect(await Promise.all(verdicts)).toEqual(['no', 'unknown', 'unknown', 'no'])
  })

  test('that fails says nothing, but of a block that cannot be', async () => {
    await expect(verdictOf(proof(100), { tracker: failing, timeout })).rejects.toThrow('away')
    expect(await verdictOf(proof(4_294_967_295), { tracker: failing, timeout })).toBe('no')
  })
})
