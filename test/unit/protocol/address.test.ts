import { PrivateKey } from '@bsv/sdk'
import fc from 'fast-check'
import { decodeAddress, encodeAddress, p2pkhOwner } from '../../../backend/src/protocol/address.js'
import { toHex } from '../../../backend/src/protocol/bytes.js'
import { bytes } from '../../support/protocol/arbitraries.js'

const key = PrivateKey.fromString('1'.padStart(64, '0'), 'hex')
const hash = toHex(Uint8Array.from(key.toPublicKey().toHash() as number[]))

test('an address is the SDK’s, of either network', () => {
  expect(encodeAddress(hash, 'main')).toBe(key.toAddress())
  expect(encodeAddress(hash, 'test')).toBe(key.toAddress('testnet'))
  expect(decodeAddress(key.toAddress())).toBe(hash)
  expect(decodeAddress(key.toAddress('testnet'))).toBe(hash)
})

test('every address is read back', () => {
  const hashes = fc.uint8Array({ minLength: 20, maxLength: 20 }).map(toHex)
  fc.assert(
    fc.property(hashes, fc.constantFrom('main' as const, 'test' as const), (owner, network) => {
      expect(decodeAddress(encodeAddress(owner, network))).toBe(owner)
    }),
  )
})

test.each([
  ['nothing', ''],
  ['a letter changed', key.toAddress().replace(/.$/, (last) => (last === 'H' ? 'J' : 'H'))],
  ['letters that are not base58', 'O0Il'],
  ['another version', '3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy'],
  ['spaces', ` ${key.toAddress()}`],
  ['a key', key.toWif()],
  ['more letters than there are in an address', '1'.repeat(100_000)],
  ['what is no text of an address at all', '\0é🙂'],
])('%s is no address', (_, text) => {
  expect(decodeAddress(text)).toBeUndefined()
})

test('any text is read without a throw', () => {
  fc.assert(fc.property(fc.string(), (text) => decodeAddress(text) === undefined))
})

test('an owner is no matter of other bytes than a lock', () => {
  fc.assert(fc.property(bytes(), (script) => script.length === 25 || p2pkhOwner(script) === undefined))
})
