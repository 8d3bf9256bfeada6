import fc from 'fast-check'
import {
  ascii,
  concatBytes,
  equalBytes,
  fromHex,
  joinBytes,
  readStrictUtf8,
  readUtf8,
  reversed,
  toHex,
  utf8,
} from '../../../backend/src/protocol/bytes.js'
import { bytes } from '../../support/protocol/arbitraries.js'

test('hex of bytes reads back as the bytes, in either case', () => {
  fc.assert(
    fc.property(bytes(), (data) => {
      expect(toHex(data)).toBe(Buffer.from(data).toString('hex'))
      expect(fromHex(toHex(data))).toEqual(data)
      expect(fromHex(toHex(data).toUpperCase())).toEqual(data)
    }),
  )
})

test.each(['a', 'abc', 'zz', '0x', ' 00', '0g', '１１'])('%j is no hex', (text) => {
  expect(() => fromHex(text)).toThrow(RangeError)
})

test('parts are joined in order, however many there are', () => {
  expect(concatBytes(Uint8Array.of(1), Uint8Array.of(), Uint8Array.of(2, 3))).toEqual(Uint8Array.of(1, 2, 3))
  expect(joinBytes(new Array(300_000).fill(Uint8Array.of(7)))).toHaveLength(300_000)
  expect(joinBytes([])).toEqual(new Uint8Array())
})

test('bytes are equal where all of them are', () => {
  fc.assert(
    fc.property(bytes(4), bytes(4), (a, b) => {
      expect(equalBytes(a, b)).toBe(Buffer.from(a).equals(Buffer.from(b)))
      expect(equalBytes(a, a.slice())).toBe(true)
    }),
  )
})

test('reversing copies, and twice is nothing', () => {
  const data = Uint8Array.of(1, 2, 3)
  expect(reversed(data)).toEqual(Uint8Array.of(3, 2, 1))
  expect(data).toEqual(Uint8Array.of(1, 2, 3))
  fc.assert(fc.property(bytes(), (any) => void expect(reversed(reversed(any))).toEqual(any)))
})

test('text goes into UTF-8 and back, a byte order mark included', () => {
  expect(ascii('ord')).toEqual(Uint8Array.of(0x6f, 0x72, 0x64))
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      expect(readUtf8(utf8(text))).toBe(text)
      expect(readStrictUtf8(utf8(text))).toBe(text)
    }),
  )
  expect(readUtf8(utf8('\ufeffa'))).toBe('\ufeffa')
})

test('bytes that are no UTF-8 are replaced, or refused', () => {
  const bad = Uint8Array.of(0x61, 0xff, 0x62)
  expect(readUtf8(bad)).toBe('a\ufffdb')
  expect(readStrictUtf8(bad)).toBeUndefined()
})
