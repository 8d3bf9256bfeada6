import { joinBytes, utf8 } from '../../../backend/src/protocol/bytes.js'
import { decodeMineNode, UNCLAIMED } from '../../../backend/src/protocol/mine-node.js'
import { COVENANT_LIMITS } from '../../../backend/src/protocol/mint.js'
import { PROFILES, termsOf } from '../../../backend/src/protocol/profile.js'
import { ScriptWalk } from '../../../backend/src/protocol/script-walk.js'
import {
  CovenantError,
  type CovenantTerms,
  covenantCode,
  covenantParts,
  rootLock,
} from '../../../src/mining/covenant.js'
import {
  covenantChain,
  covenantMint,
  refusalByCheck,
  refusalByScript,
} from '../../support/mining/covenant-mints.js'

const TERMS: CovenantTerms = {
  covenantVersion: 2,
  difficulty: 22,
  nameContentType: 'application/name-claim',
  marker: utf8(PROFILES.local.nameMarker),
}

const long = (length: number) => 'x'.repeat(length)

/** Terms at the ends of what can be, each with names of what is unusual. */
const POSSIBLE: [string, Partial<CovenantTerms>][] = [
  ['nothing unusual', {}],
  ['one bit of work', { difficulty: 1 }],
  ['32 bits of work', { difficulty: 32 }],
  ['a content type of one byte', { nameContentType: 'x' }],
  ['a content type of 255 bytes', { nameContentType: long(255) }],
  ['a content type of few characters and many bytes', { nameContentType: '\u20ac'.repeat(85) }],
  ['a marker of one byte', { marker: utf8('x') }],
  ['a marker of 75 bytes', { marker: utf8(long(75)) }],
  ['a TLD of one byte', { tld: 'x' }],
  ['a TLD of 73 bytes', { tld: long(73) }],
  ['everything long', { nameContentType: long(255), marker: utf8(long(75)), tld: long(73) }],
  ['the limits that it has', { limits: COVENANT_LIMITS }],
]

const IMPOSSIBLE: [string, Partial<CovenantTerms>][] = [
  ['no work', { difficulty: 0 }],
  ['33 bits of work', { difficulty: 33 }],
  ['no content type', { nameContentType: '' }],
  ['a content type of 256 bytes', { nameContentType: long(256) }],
  ['no marker', { marker: new Uint8Array() }],
  ['a marker of 76 bytes', { marker: new Uint8Array(76) }],
  ['a TLD of 74 bytes', { tld: long(74) }],
  ['version 3', { covenantVersion: 3 as never }],
  ['other limits', { limits: { ...COVENANT_LIMITS, nameBytes: 76 } }],
  ['another limit of output 2', { limits: { ...COVENANT_LIMITS, nameScriptBytes: 65_536 } }],
]

test('the code for the terms of a local network has at most 465 bytes, of either version', () => {
  for (const covenantVersion of [1, 2] as const) {
    const code = covenantCode({ ...TERMS, covenantVersion })
    expect(code).toEqual(covenantCode(termsOf(PROFILES.local, { covenantVersion })))
    expect(code.length).toBeLessThanOrEqual(465)
  }
})

const OF_EACH_VERSION = POSSIBLE.flatMap(([what, terms]): typeof POSSIBLE => [
  [what, terms],
  [`${what}, of version 1`, { ...terms, covenantVersion: 1 }],
])

test.each(OF_EACH_VERSION)(
  'a covenant with %s is whole, and locks a root that the decoder reads',
  (_, terms) => {
    const all = { ...TERMS, ...terms }
    const code = covenantCode(all)
    expect(code).toEqual(joinBytes(Object.values(covenantParts(all))))
    // The length of every node takes three bytes.
    expect(code.length).toBeGreaterThanOrEqual(0xfd)
    // It knows where it ends: the number of two bytes before the last SPLIT.
    const end = code.length + 2
    expect(covenantParts(all).split.slice(-4)).toEqual(Uint8Array.of(2, end & 0xff, end >> 8, 0x7f))
    const walk = new ScriptWalk(code)
    while (walk.next()) {
      // OP_NOP1 is the first of the opcodes past the signature checks; Chronicle's were made of those.
      expect(walk.op).toBeLessThan(0xb0)
      expect([0x62, 0x65, 0x66, 0x8d, 0x8e]).not.toContain(walk.op)
    }
    expect(walk.end).toBe(code.length)
    const root = { code, genesis: undefined, claimed: UNCLAIMED, domain: '', seed: new Uint8Array() }
    expect(decodeMineNode(rootLock(all))).toEqual(root)
  },
)

test.each(IMPOSSIBLE)('terms with %s are refused', (_, terms) => {
  for (const build of [covenantCode, covenantParts, rootLock]) {
    expect(() => build({ ...TERMS, ...terms })).toThrow(CovenantError)
    expect(() => build({ ...TERMS, ...terms })).toThrow(expect.objectContaining({ code: 'BAD_TERMS' }))
  }
})

test.each<[string, NonNullable<Parameters<typeof covenantChain>[0]>]>([
  ['a marker of one byte', { nameMarker: 'x' }],
  [
    'version 1, and a marker and content type of one byte',
    { covenantVersion: 1, nameMarker: 'x', nameContentType: 'x' },
  ],
  ['a marker of 75 bytes', { nameMarker: long(75) }],
  ['a marker that a minimal push would write as an opcode', { nameMarker: '\x05' }],
  ['a content type of one byte', { nameContentType: 'x' }],
  ['a content type of 76 bytes', { nameContentType: long(76) }],
  ['a content type of 255 bytes', { nameContentType: long(255) }],
  ['a TLD of 73 bytes', { tld: long(73) }],
  ['a TLD in UTF-8', { tld: '\u20ac' }],
])('mints are accepted under a covenant with %s', (_, options) => {
  const chain = covenantChain(options)
  // With the longest TLD there is room for one character.
  for (const name of options.tld?.length === 73 ? ['a', 'b'] : ['a', 'b', 'ab', 'abc']) {
    const mint = covenantMint(chain, name)
    expect([refusalByScript(mint), refusalByCheck(mint)]).toEqual([undefined, undefined])
  }
})

test('a name with the longest TLD has one character', () => {
  const chain = covenantChain({ tld: long(73) })
  chain.mint('a')
  const mint = covenantMint(chain, 'ab')
  expect(refusalByScript(mint)).toBeDefined()
  expect(refusalByCheck(mint)).toBe('TOO_LONG')
})
