import fc from 'fast-check'
import { ascii, fromHex, readStrictUtf8, readUtf8, toHex, utf8 } from '../../../backend/src/protocol/bytes.js'
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
