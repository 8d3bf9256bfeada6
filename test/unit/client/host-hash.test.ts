import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { hash256, sha256 } from '../../../backend/src/protocol/transaction.js'
import { hostHash256, nativeHash } from '../../../src/client/bundle.js'
import { portableSha256 } from '../../../src/client/portable-sha256.js'
import { bytes } from '../../support/protocol/arbitraries.js'

test("the host's hash is the SDK's", () => {
  fc.assert(
    fc.property(bytes(), (message) => {
      expect(hostHash256(message)).toEqual(hash256(message))
    }),
  )
})

test('where the host has none, as in a browser, there is none to take', () => {
  expect(nativeHash({})).toBeUndefined()
  expect(nativeHash({ process: {} })).toBeUndefined()
})

test('Node gives its own', () => {
  const native = nativeHash(globalThis)
  expect(native?.(Uint8Array.of(1, 2, 3))).toEqual(sha256(Uint8Array.of(1, 2, 3)))
})

describe('the hash where the host has none', () => {
  const expected = (message: Uint8Array) => createHash('sha256').update(message).digest('hex')
  const found = (message: Uint8Array) => Buffer.from(portableSha256(message)).toString('hex')

  test('is SHA-256 of messages around the ends of blocks, wherever they are in their buffer', () => {
    const buffer = new Uint8Array(400).map((_, at) => (at * 167) ^ (at >> 1))
    for (let length = 0; length <= 200; length++)
      for (const message of [buffer.subarray(0, length), buffer.subarray(length % 7, (length % 7) + length)])
        expect(found(message)).toBe(expected(message))
  })

  test('is SHA-256 of anything', () => {
    fc.assert(fc.property(bytes(), (message) => void expect(found(message)).toBe(expected(message))))
    const long = new Uint8Array(3_000_001).map((_, at) => at * 31)
    expect(found(long)).toBe(expected(long))
  })
})
