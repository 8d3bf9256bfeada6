import { equalBytes, joinBytes } from '../../../backend/src/protocol/bytes.js'
import { isNameCharacter } from '../../../backend/src/protocol/mine-node.js'
import { readTransaction } from '../../../backend/src/protocol/transaction.js'
import {
  covenantChain,
  covenantMint,
  RULES,
  refusalByCheck,
  refusalByScript,
  refusingPart,
} from '../../support/mining/covenant-mints.js'
import { IS_NIGHTLY, sampleOf } from '../../support/nightly.js'
import { brokenMints, unboundMints } from '../../support/protocol/broken-mints.js'
import { type FakeOutput, type MintOverrides, p2pkh } from '../../support/protocol/fake-chain.js'
import { encodeTransaction } from '../../support/protocol/raw-transaction.js'

const chain = covenantChain({ difficulty: 4 })
chain.mintAll('ab')
const PARENT = chain.node('a')

/** A mint of `ac`, from the live node of `a`, which stays live. */
const attempt = (overrides: MintOverrides = {}) => covenantMint(chain, 'ac', { from: PARENT, ...overrides })

const BROKEN = brokenMints(chain)

const ALL_RULES = Object.keys(RULES) as (keyof typeof RULES)[]

test('what the cases below break is accepted unbroken', () => {
  for (const rules of ALL_RULES) expect(refusalByScript(attempt(), rules)).toBeUndefined()
})

test.each(BROKEN)('the covenant refuses $has, under all rules', ({ part, overrides }) => {
  const mint = attempt(overrides)
  for (const rules of sampleOf(ALL_RULES, 2)) expect(refusingPart(mint, rules), rules).toBe(part)
})

describe('a covenant of version 1', () => {
  const first = covenantChain({ covenantVersion: 1 })
  first.mintAll('ab')
  const from = first.node('a')
  const attemptFirst = (overrides: MintOverrides) => covenantMint(first, 'ac', { from, ...overrides })

  // Version 2 of a transaction may have code there.
  test.each(brokenMints(first).filter(({ has }) => has !== 'code after the pushes'))(
    'refuses $has, of either version of a transaction',
    ({ code, part, overrides }) => {
      for (const version of sampleOf([2, 1], 2)) {
        const mint = attemptFirst({ version, ...overrides })
        expect(refusalByScript(mint) === undefined).toBe(part === 'none')
        expect(refusalByCheck(mint)).toBe(code.split(' ')[0])
      }
    },
  )

  test.each(unboundMints(first))('takes $has, and so does the check', ({ overrides }) => {
    const mint = attemptFirst(overrides)
    expect([refusalByScript(mint), refusalByCheck(mint)]).toEqual([undefined, undefined])
  })
})

test('every character code that names do not have is refused, though all else fits', () => {
  for (let code = 0; code < 128; code++) {
    const mint = attempt({ character: String.fromCharCode(code) })
    if (code === 0x62) expect(refusalByCheck(mint)).toBe('CLAIMED')
    else if (isNameCharacter(code)) expect(refusalByCheck(mint)).toBeUndefined()
    else expect(refusalByCheck(mint)).toBe('BAD_CHARACTER')
    // By day only at the ends of what names have.
    if (isNameCharacter(code - 1) === isNameCharacter(code + 1) && !IS_NIGHTLY) continue
    expect(refusingPart(mint)).toBe(refusalByCheck(mint) === undefined ? 'none' : 'character')
  }
})

test('bytes from 128 on are refused', () => {
  for (const code of sampleOf([128, 255, ...Array.from({ length: 126 }, (_, at) => 129 + at)], 16)) {
    const mint = attempt({ unlocking: (pushes) => ({ ...pushes, character: String.fromCharCode(code) }) })
    expect([refusingPart(mint), refusalByCheck(mint)]).toEqual(['character', 'BAD_CHARACTER'])
  }
})

test('a signature over anything but all outputs is refused', () => {
  // Each a type that a signature can have; the preimage says so, and is hashed as it stands.
  for (const type of [0x41, 0x42, 0x43, 0x01, 0x81, 0xc2, 0xc3, 0xe1, 0x61]) {
    const mint = attempt({
      unlocking: (pushes) => ({
        ...pushes,
        preimage: pushes.preimage.map((byte, i) => (i === pushes.preimage.length - 4 ? type : byte)),
      }),
    })
    expect([refusingPart(mint), refusalByCheck(mint)]).toEqual(['preimage', 'BAD_UNLOCKING'])
  }
})

test.each([
  ['', 75, {}],
  [' with its TLD', 70, { tld: 'test' }],
])('a name may have 75 bytes%s, and no more', (_, most, terms) => {
  const long = 'long-name'.repeat(9)
  const deep = covenantChain(terms)
  deep.mintAll(long.slice(0, most - 1))
  for (const [length, verdict] of [
    [most, ['none', undefined]],
    [most + 1, ['states', 'TOO_LONG']],
  ] as const) {
    const mint = covenantMint(deep, long.slice(0, length))
    expect([refusingPart(mint), refusalByCheck(mint)]).toEqual(verdict)
  }
})

describe('output 2', () => {
  const besideLock = attempt({ ownerLock: new Uint8Array() }).transaction.outputs[2]?.lockingScript ?? []

  // Cut to two bytes, the length of an output of 65,536 + 300 bytes reads 300. What follows would be more outputs.
  test('cannot be cut short by a length that wraps, and leave the name to an output that nobody reads', () => {
    const front = new Uint8Array(300).fill(0x61)
    const rest = 65_536 + 300 - front.length - besideLock.length
    // The 65,536 bytes after the first 300: an output whose script takes all of them.
    const header = joinBytes([new Uint8Array(8), Uint8Array.of(0xfd, ...u16(65_536 - 11))])
    const ownerLock = joinBytes([front, header, new Uint8Array(rest - header.length)])
    const honest = attempt({ ownerLock })
    const nameScript = honest.transaction.outputs[2]?.lockingScript ?? new Uint8Array()
    expect(nameScript).toHaveLength(65_836)
    const outputs = (all: FakeOutput[]): FakeOutput[] => [
      ...all.slice(0, 2),
      { satoshis: 1, lockingScript: front },
      { satoshis: 0, lockingScript: nameScript.subarray(300 + 11) },
      ...all.slice(3),
    ]
    const change = { satoshis: 990, lockingScript: p2pkh(0) }
    const [written] = readTransaction(encodeTransaction({ inputs: [], outputs: [change] })).outputs
    const mint = attempt({
      ...{ ownerLock, outputs, trailing: [change] },
      unlocking: (pushes) => ({ ...pushes, trailing: written?.bytes ?? pushes.trailing }),
    })
    // The bytes are those which such a covenant would hash, and the name is in none of outputs 0 to 2.
    const all = joinBytes(mint.transaction.outputs.map(({ bytes }) => bytes))
    expect(equalBytes(all.subarray(-nameScript.length - 34, -34), nameScript)).toBe(true)
    expect([refusingPart(mint), refusalByCheck(mint)]).toEqual(['name', 'TOO_LONG'])
  })
})

function u16(value: number): number[] {
  return [value & 0xff, value >>> 8]
}
