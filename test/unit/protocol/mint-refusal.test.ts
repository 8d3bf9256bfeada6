import fc from 'fast-check'
import { ascii, concatBytes } from '../../../backend/src/protocol/bytes.js'
import { checkMint, MintError, mintPreimage } from '../../../backend/src/protocol/mint.js'
import { readTransaction } from '../../../backend/src/protocol/transaction.js'
import { bytes, mutated } from '../../support/protocol/arbitraries.js'
import { brokenMints, changed, nodeWith } from '../../support/protocol/broken-mints.js'
import {
  FakeChain,
  type FakeTransaction,
  type MintOverrides,
  p2pkh,
} from '../../support/protocol/fake-chain.js'

const chain = new FakeChain()
chain.mintAll('ab')
const { deployment } = chain

/** A mint of `ac`, from the live node of `a`, which stays live. */
function attempt(overrides: MintOverrides = {}): FakeTransaction {
  return chain.mint('ac', { from: chain.node('a'), ...overrides })
}

function check(mint: FakeTransaction, more: Partial<Parameters<typeof checkMint>[0]> = {}) {
  return checkMint({ transaction: mint.transaction, input: 0, deployment, ...more })
}

const PARENT = chain.node('a')
const BROKEN = brokenMints(chain)

describe('no mint', () => {
  test.each(BROKEN)('has $has', ({ code, overrides }) => {
    expect(codeOf(() => check(attempt(overrides), { spent: overrides.from ?? PARENT }))).toBe(code)
  })

  // A preimage that is not the input's own may state another node, and then that is what is wrong.
  test.each(BROKEN.filter(({ part }) => part !== 'preimage'))(
    'has $has, where only the preimage tells what is spent',
    ({ code, overrides }) => {
      expect(codeOf(() => check(attempt(overrides)))).toBe(code)
    },
  )

  test.each([
    ['a name', { nameBytes: 1 }],
    ['a name output', { nameScriptBytes: 1 }],
  ])('has %s longer than the covenant can write', (_, limit) => {
    const mint = attempt()
    const nameScriptBytes = mint.transaction.outputs[2]?.lockingScript.length ?? 0
    const limits = { nameBytes: 2, nameScriptBytes }
    expect(check(mint, { deployment: { ...deployment, limits } }).name).toBe('ac')
    expect(
      codeOf(() => check(mint, { deployment: { ...deployment, limits: { ...limits, ...limit } } })),
    ).toMatch(/^TOO_LONG/)
  })

  test('spends an output that is no node', () => {
    const { satoshis, outpoint } = PARENT
    const spent = { satoshis, outpoint, lockingScript: p2pkh(1) }
    const mint = attempt({
      unlocking: (pushes) => ({
        ...pushes,
        preimage: concatBytes(pushes.preimage.subarray(0, 104), ...lockInPreimage(pushes.preimage)),
      }),
    })
    for (const given of [{ spent }, {}]) {
      expect(() => check(mint, given)).toThrow(
        expect.objectContaining({ code: 'NOT_A_NODE', name: 'MintError' }),
      )
    }
  })

  test('states another output in its preimage than it spends', () => {
    const mint = attempt()
    for (const spent of [
      nodeWith(chain, { domain: 'b' }),
      nodeWith(chain, {}, 2),
      { ...PARENT, lockingScript: p2pkh(1) },
    ]) {
      expect(codeOf(() => check(mint, { spent }))).toBe('BAD_UNLOCKING')
    }
  })

  test('has a preimage with any byte changed', () => {
    const mint = attempt()
    const { length } = mintPreimage({ transaction: mint.transaction, input: 0, spent: PARENT })
    for (let at = 0; at < length; at++) {
      const broken = attempt({
        unlocking: (pushes) => {
          const preimage = pushes.preimage.slice()
          preimage[at] = (preimage[at] ?? 0) ^ 0x01
          return { ...pushes, preimage }
        },
      })
      expect(codeOf(() => check(broken, { spent: PARENT }))).toBe('BAD_UNLOCKING')
      expect(codeOf(() => check(broken))).toMatch(
        /^(BAD_UNLOCKING|NOT_A_NODE|OTHER_TREE|CLAIMED|BAD_WORK|BAD_OUTPUT \d)$/,
      )
    }
  })

  test('has any byte of outputs 0 to 2 changed', () => {
    const right = attempt()
    for (const vout of [0, 1, 2]) {
      for (let at = 0; at < (right.transaction.outputs[vout]?.lockingScript.length ?? 0); at++) {
        const mint = attempt(
          changed(vout, ({ satoshis, lockingScript }) => {
            const flipped = lockingScript.slice()
            flipped[at] = (flipped[at] ?? 0) ^ 0x80
            return { satoshis, lockingScript: flipped }
          }),
        )
        expect(codeOf(() => check(mint))).toBe(`BAD_OUTPUT ${vout}`)
      }
    }
  })

  test('belongs to another deployment', () => {
    const mint = attempt()
    const changes = [
      [{ genesis: { ...deployment.genesis, vout: 1 } }, 'OTHER_TREE'],
      [{ difficulty: 200 }, 'BAD_WORK'],
      [{ nameContentType: 'text/plain' }, 'BAD_OUTPUT 2'],
      [{ marker: ascii('other') }, 'BAD_OUTPUT 2'],
      [{ tld: 'test' }, 'BAD_OUTPUT 2'],
    ] as const
    for (const [change, code] of changes) {
      expect(codeOf(() => check(mint, { deployment: { ...deployment, ...change } }))).toBe(code)
    }
  })

  test('is a MintError, whatever bytes the transaction and its script are', () => {
    const { raw, transaction } = attempt()
    const unlocking = transaction.inputs[0]?.unlockingScript ?? new Uint8Array()
    const scripts = fc.oneof(bytes(), mutated(fc.constant(unlocking)))
    fc.assert(
      fc.property(scripts, mutated(fc.constant(raw)), fc.boolean(), (script, wholly, withSpent) => {
        const attempts = [
          {
            ...transaction,
            inputs: transaction.inputs.map((input) => ({ ...input, unlockingScript: script })),
          },
        ]
        try {
          attempts.push(readTransaction(wholly))
        } catch {
          // Not a transaction any more, and readTransaction has its own tests.
        }
        for (const any of attempts) {
          try {
            checkMint({ transaction: any, input: 0, deployment, ...(withSpent && { spent: PARENT }) })
          } catch (error) {
            expect(error).toBeInstanceOf(MintError)
          }
        }
      }),
      { numRuns: 500 },
    )
  })
})

function codeOf(act: () => unknown): string {
  try {
    act()
    return 'no error'
  } catch (error) {
    if (!(error instanceof MintError)) throw error
    return error.vout === undefined ? error.code : `${error.code} ${error.vout}`
  }
}

/** A preimage from its script on, the script being a plain lock. */
function lockInPreimage(preimage: Uint8Array): Uint8Array[] {
  return [Uint8Array.of(p2pkh(1).length), p2pkh(1), preimage.subarray(-52)]
}
