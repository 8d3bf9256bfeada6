import { BigNumber } from '@bsv/sdk'
import fc from 'fast-check'
import { fromHex, toHex } from '../../../backend/src/protocol/bytes.js'
import { readPushes } from '../../../backend/src/protocol/script-walk.js'
import { assemble } from '../../../src/mining/covenant-parts.js'

test.each([
  ['DUP HASH256', '76aa'],
  ['0NOTEQUAL', '92'],
  ['2DUP', '6e'],
  ['0', '00'],
  ['1', '51'],
  ['16', '60'],
  ['17', '0111'],
  ['-1', '4f'],
  ['-114', '01f2'],
  ['127', '017f'],
  ['128', '028000'],
  ['-128', '028080'],
  ['253', '02fd00'],
  ['432', '02b001'],
])('%s is written %s', (words, hex) => {
  expect(toHex(assemble(words))).toBe(hex)
})

test('bytes are pushed, in the shortest way', () => {
  expect(toHex(assemble(new Uint8Array()))).toBe('00')
  expect(toHex(assemble(Uint8Array.of(7)))).toBe('57')
  expect(toHex(assemble(fromHex('abcd')))).toBe('02abcd')
  expect(toHex(assemble(new Uint8Array(76))).slice(0, 6)).toBe('4c4c00')
})

test('a list is its parts, in order', () => {
  expect(toHex(assemble(['DUP', Uint8Array.of(0), ['CAT 2', ['SPLIT']]]))).toBe('7601007e527f')
})

test('a number reads back as the script number that it is', () => {
  fc.assert(
    fc.property(fc.integer({ min: -(2 ** 40), max: 2 ** 40 }), (value) => {
      const [pushed] = readPushes(assemble(String(value)), { limit: 1 })
      expect(BigNumber.fromScriptNum(Array.from(pushed ?? []), true).toString()).toBe(String(value))
    }),
  )
})

test.each(['DUPE', 'dup', '', 'DUP  CAT', '01', '1.5', 'OP_DUP', '0x10', 'PUSHDATA9'])(
  '%j is refused',
  (words) => {
    expect(() => assemble(words)).toThrow(RangeError)
  },
)
