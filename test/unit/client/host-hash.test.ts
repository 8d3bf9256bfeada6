import fc from 'fast-check'
import { hash256 } from '../../../backend/src/protocol/transaction.js'
import { hostHash256, nativeHash } from '../../../src/client/bundle.js'
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
  expect(native?.(Uint8Array.of(1, 2, 3))).toEqual(hash256(Uint8Array.of(1, 2, 3)))
})
