import fc from 'fast-check'
import { ascii, concatBytes, fromHex, toHex, utf8 } from '../../../backend/src/protocol/bytes.js'
import { readInscription } from '../../../backend/src/protocol/inscription.js'
import { claim, decodeMineNode, NAME_CHARACTERS, UNCLAIMED } from '../../../backend/src/protocol/mine-node.js'
import {
  checkMint,
  encodeNameOutput,
  MintError,
  meetsDifficulty,
  mintPreimage,
  proofOfWork,
} from '../../../backend/src/protocol/mint.js'
import { readPushes } from '../../../backend/src/protocol/script-walk.js'
import { hash256, readTransaction } from '../../../backend/src/protocol/transaction.js'
import { bytes, bytesOf, mutated } from '../../support/protocol/arbitraries.js'
import { brokenMints, changed, nodeWith } from '../../support/protocol/broken-mints.js'
import {
  FakeChain,
  type FakeTransaction,
  inscriptionScript,
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
const nodeAt = ({ transaction }: FakeTransaction, vout: number) =>
  decodeMineNode(transaction.outputs[vout]?.lockingScript ?? new Uint8Array())

describe('a mint', () => {
  test.each<[string, MintOverrides]>([
    ['as it is', {}],
    ['with no outputs after the name', { trailing: [] }],
    ['with many', { trailing: new Array(300).fill({ satoshis: 5, lockingScript: p2pkh(5) }) }],
    ['with an empty owner lock', { ownerLock: new Uint8Array() }],
    ['with an owner lock of 70,000 bytes', { ownerLock: new Uint8Array(70_000) }],
    ['with an owner lock that ends in the middle of a push', { ownerLock: Uint8Array.of(0x4c) }],
    ['with an owner lock that returns', { ownerLock: Uint8Array.of(0x6a) }],
  ])('passes %s, with the spent output and without', (_, overrides) => {
    const mint = attempt(overrides)
    const { character, name, domain, seed, child, ...rest } = check(mint)
    expect({ character, name, domain }).toEqual({ character: 'c', name: 'ac', domain: 'a' })
    expect(rest.ownerLock).toEqual(overrides.ownerLock ?? p2pkh(1))
    expect([rest.restated, child]).toEqual([nodeAt(mint, 0), nodeAt(mint, 1)])
    expect(child).toMatchObject({ domain: 'ac', claimed: UNCLAIMED, seed })
    expect(check(mint, { spent: PARENT })).toEqual(check(mint))
  })

  test('passes wherever the node stands among the inputs, and at that input only', () => {
    const mint = attempt({ funding: [chain.madeUpCoin(), chain.madeUpCoin()], nodeInputPosition: 1 })
    expect(check(mint, { input: 1 }).name).toBe('ac')
    for (const input of [0, 2, 3, -1]) {
      expect(() => check(mint, { input })).toThrow(expect.objectContaining({ code: 'BAD_UNLOCKING' }))
    }
  })

  test('passes for every character, one after another from the same node', () => {
    const tree = new FakeChain({ codeSize: 0, difficulty: 1 })
    let claimed = UNCLAIMED
    for (const character of NAME_CHARACTERS) {
      claimed = claim(claimed, character.charCodeAt(0))
      const { transaction } = tree.mint(character)
      const mint = checkMint({ transaction, input: 0, deployment: tree.deployment })
      expect(mint.name).toBe(character)
      expect(mint.restated.claimed).toEqual(claimed)
    }
  })

  test('passes at any depth', () => {
    const tree = new FakeChain({ difficulty: 1 })
    const name = 'deep-'.repeat(60)
    const { transaction } = tree.mintAll(name).at(-1) as FakeTransaction
    expect(checkMint({ transaction, input: 0, deployment: tree.deployment }).name).toBe(name)
  })

  test('passes with zero bytes after the character, which the live covenant lets through', () => {
    const mint = attempt({ character: 'c\0\0' })
    expect(check(mint)).toMatchObject({ character: 'c\0\0', name: 'ac\0\0', domain: 'a' })
    expect(check(mint, { spent: PARENT }).restated).toEqual(nodeAt(mint, 0))
    for (const character of ['\0', '\0c', 'c\0c', 'c\0\x80'])
      expect(() => check(attempt({ character }))).toThrow(expect.objectContaining({ code: 'BAD_CHARACTER' }))
    expect(() => check(attempt({ character: 'b\0' }))).toThrow(expect.objectContaining({ code: 'CLAIMED' }))
  })

  test('passes from the root as deployed, whose genesis and seed are empty', () => {
    const tree = new FakeChain()
    const { transaction } = tree.mint('x')
    const mint = checkMint({ transaction, input: 0, deployment: tree.deployment })
    expect(mint).toMatchObject({ name: 'x', domain: '' })
    expect(mint.restated.genesis).toEqual(tree.deployment.genesis)
    expect(mint.seed).toEqual(proofOfWork({ seed: new Uint8Array(), character: 'x', nonce: mint.nonce }))
  })

  test('is named by the tree: neither a TLD nor a decoy in the owner lock is in its name', () => {
    const tree = new FakeChain({ tld: 'test' })
    const ownerLock = inscriptionScript({ contentType: 'application/name-claim', body: utf8('decoy.test') })
    const { transaction } = tree.mint('x', { ownerLock })
    const output = transaction.outputs[2]?.lockingScript ?? new Uint8Array()
    expect(readInscription(output).content?.body).toEqual(utf8('decoy.test'))
    expect(toHex(output)).toContain(toHex(utf8('x.test')))
    const mint = checkMint({ transaction, input: 0, deployment: tree.deployment })
    expect(mint).toMatchObject({ name: 'x', ownerLock })
  })

  test('takes pushes of any form, as the covenant sees only what they push', () => {
    const long = (push: Uint8Array) =>
      concatBytes(Uint8Array.of(0x4e, push.length & 0xff, push.length >> 8, 0, 0), push)
    const mint = attempt({
      unlockingScript: (script) => concatBytes(...readPushes(script, { limit: 5 }).map(long)),
    })
    expect(check(mint).name).toBe('ac')
  })
})

test.each([
  [75, '4b'],
  [76, '4c'],
  [127, '7f'],
  [128, '8000'],
  [255, 'ff00'],
])('the length of a name of %i characters is the script number %s', (length, number) => {
  const script = encodeNameOutput({ ownerLock: fromHex('51'), name: 'a'.repeat(length), deployment })
  expect(toHex(script)).toContain(`00${number}${'61'.repeat(length)}68`)
})

test('the name output is lock, envelope, marker and genesis', () => {
  const named = { ...deployment, nameContentType: 'a/b', marker: ascii('mark') }
  const genesis = `${deployment.genesis.txid.match(/../g)?.reverse().join('')}00000000`
  const script = (tld?: string) =>
    toHex(encodeNameOutput({ ownerLock: fromHex('51'), name: 'ac', deployment: { ...named, tld } }))
  expect(script()).toBe(`510063036f72645103612f6200026163686a046d61726b24${genesis}`)
  expect(script('x')).toBe(`510063036f72645103612f620004${'61632e78'}686a046d61726b24${genesis}`)
})

describe('work', () => {
  test('is the double hash of seed, character and nonce', () => {
    fc.assert(
      fc.property(bytesOf(32), fc.constantFrom(...NAME_CHARACTERS), bytes(80), (seed, character, nonce) => {
        const message = concatBytes(seed, ascii(character), nonce)
        expect(proofOfWork({ seed, character, nonce })).toEqual(hash256(message))
      }),
    )
  })

  test.each([
    ['00', 8],
    ['01', 7],
    ['ff', 0],
    ['7f', 1],
    ['ff00', 8],
    ['ff0300', 14],
    ['0100', 15],
    ['0000', 16],
    ['00ff', 0],
    ['da6c82783867276e1ff3e59aa962f7fbc9f7861a355b8f34194210285e020000', 22],
  ])('of %s meets %i bits and no more', (hex, bits) => {
    expect(meetsDifficulty(fromHex(hex), 0)).toBe(true)
    expect(meetsDifficulty(fromHex(hex), bits)).toBe(true)
    expect(meetsDifficulty(fromHex(hex), bits + 1)).toBe(false)
  })
})

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
    const limited = (limits: object) =>
      check(mint, { deployment: { ...deployment, limits: { nameBytes: 2, nameScriptBytes, ...limits } } })
    expect(limited({}).name).toBe('ac')
    expect(codeOf(() => limited(limit))).toMatch(/^TOO_LONG/)
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
    for (const given of [{ spent }, {}]) expect(codeOf(() => check(mint, given))).toBe('NOT_A_NODE')
  })

  test('states another output in its preimage than it spends', () => {
    const mint = attempt()
    const locked = { ...PARENT, lockingScript: p2pkh(1) }
    for (const spent of [nodeWith(chain, { domain: 'b' }), nodeWith(chain, {}, 2), locked])
      expect(codeOf(() => check(mint, { spent }))).toBe('BAD_UNLOCKING')
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
        const inputs = transaction.inputs.map((input) => ({ ...input, unlockingScript: script }))
        const attempts = [{ ...transaction, inputs }]
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
