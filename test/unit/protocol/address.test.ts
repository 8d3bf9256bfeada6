import { P2PKH, PrivateKey } from '@bsv/sdk'
import fc from 'fast-check'
import { decodeAddress, encodeAddress, p2pkhOwner } from '../../../backend/src/protocol/address.js'
import { concatBytes, fromHex, toHex, utf8 } from '../../../backend/src/protocol/bytes.js'
import { encodeEnvelope, readInscription } from '../../../backend/src/protocol/inscription.js'
import { bytes } from '../../support/protocol/arbitraries.js'
import { bitcomTail, inscriptionScript, mapTail, p2pkh } from '../../support/protocol/fake-chain.js'

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

const lock = Uint8Array.from(new P2PKH().lock(key.toAddress()).toBinary())
const envelope = encodeEnvelope({ contentType: 'text/plain', body: utf8('a') })

describe('the owner of an output', () => {
  test.each([
    ['a lock alone', lock],
    ['a lock with an envelope after it', concatBytes(lock, envelope)],
    ['an envelope with a lock after it', concatBytes(envelope, lock)],
    ['a lock with MAP', concatBytes(lock, mapTail({ a: '1' }))],
    ['a lock with an envelope and MAP', concatBytes(lock, envelope, mapTail({ a: '1' }))],
    ['a lock with OP_RETURN and nothing', concatBytes(lock, bitcomTail())],
  ])('is known from %s', (_, script) => {
    expect(readInscription(script).owner).toBe(hash)
  })

  test.each([
    ['nothing', new Uint8Array()],
    ['an envelope alone', envelope],
    ['another opcode behind the lock', concatBytes(lock, fromHex('61'))],
    ['another opcode before the lock', concatBytes(fromHex('61'), lock)],
    ['a second envelope', concatBytes(lock, envelope, envelope)],
    ['a lock around the envelope', concatBytes(lock.subarray(0, 3), envelope, lock.subarray(3))],
    ['a lock on either side', concatBytes(lock, envelope, lock)],
    ['a lock in the OP_RETURN', concatBytes(fromHex('6a'), lock)],
    ['OP_FALSE OP_RETURN, which nobody can spend', concatBytes(lock, fromHex('00'), bitcomTail())],
    ['a script hash', fromHex(`a914${hash}87`)],
    ['a hash of 19 bytes', fromHex(`76a913${hash.slice(2)}88ac`)],
  ])('is not known from %s', (_, script) => {
    expect(readInscription(script).owner).toBeUndefined()
  })

  test('is the one that made the script', () => {
    const owner = toHex(p2pkh(7).subarray(3, 23))
    expect(readInscription(inscriptionScript({ lock: p2pkh(7), body: utf8('b') })).owner).toBe(owner)
  })

  test('is no matter of other bytes', () => {
    fc.assert(fc.property(bytes(), (script) => script.length === 25 || p2pkhOwner(script) === undefined))
  })
})
