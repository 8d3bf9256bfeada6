import fc from 'fast-check'
import { B_MARKER, MAP_MARKER } from '../../../backend/src/protocol/bitcom.js'
import { concatBytes, fromHex, joinBytes, utf8 } from '../../../backend/src/protocol/bytes.js'
import { encodeEnvelope, readInscription } from '../../../backend/src/protocol/inscription.js'
import { encodePush } from '../../../backend/src/protocol/script-walk.js'
import { bytes, mutated } from '../../support/protocol/arbitraries.js'
import {
  bitcomTail,
  FakeChain,
  inscriptionScript,
  mapTail,
  p2pkh,
} from '../../support/protocol/fake-chain.js'
import { readInPasses } from '../../support/protocol/walk-steps.js'

const body = utf8('body')
const contentType = 'text/plain'
const typedB = bitcomTail([B_MARKER, 'b data', 'text/css', 'utf-8'])
const untypedB = bitcomTail([B_MARKER, 'b data'])
const B = [B_MARKER, 'b data', 'text/css']
const UNTYPED = { contentType: 'application/octet-stream' }
const EMPTY = { body: new Uint8Array() }
const fromEnvelope = { contentType, body, source: 'envelope' }
const fromB = { contentType: 'text/css', body: utf8('b data'), source: 'b' }

describe('the content of an output', () => {
  test.each([
    ['an envelope with a type', { contentType, body }, fromEnvelope],
    ['an envelope with a type, and B', { contentType, body, suffix: typedB }, fromEnvelope],
    ['an envelope without a type, and B', { body, suffix: typedB }, fromB],
    ['an envelope and B, both without a type', { body, suffix: untypedB }, { ...fromB, ...UNTYPED }],
    ['an envelope without a type', { body }, { ...fromEnvelope, ...UNTYPED }],
    ['an envelope with an empty body', { contentType, ...EMPTY }, { ...fromEnvelope, ...EMPTY }],
    ['an envelope with a type and no body', { contentType }, undefined],
    ['an envelope with a type and no body, and B', { contentType, suffix: typedB }, fromB],
    ['an envelope with nothing', {}, undefined],
    ['an envelope with a MAP after it', { contentType, body, suffix: mapTail({ a: '1' }) }, fromEnvelope],
    ['a B marker alone', { body, suffix: bitcomTail([B_MARKER]) }, { ...fromEnvelope, ...UNTYPED }],
  ])('is right for %s', (_, parts, content) => {
    expect(readInscription(inscriptionScript(parts)).content).toEqual(content)
  })

  test.each([
    ['B alone', typedB, fromB],
    ['B after OP_FALSE OP_RETURN', concatBytes(fromHex('00'), typedB), fromB],
    ['B without a type', untypedB, { ...fromB, ...UNTYPED }],
    ['B after another protocol', bitcomTail([MAP_MARKER, 'SET', 'a', '1'], B), fromB],
    ['two B, the first of which counts', bitcomTail(B, [B_MARKER, 'x', 'y']), fromB],
    ['empty B', bitcomTail([B_MARKER, '', 'text/css']), { ...fromB, ...EMPTY }],
    ['B in no OP_RETURN', typedB.subarray(1), undefined],
    ['a lock alone', p2pkh(1), undefined],
    ['nothing', new Uint8Array(), undefined],
  ])('is right for %s', (_, script, content) => {
    expect(readInscription(script).content).toEqual(content)
  })

  test('is the first envelope, though a decoy stands in the lock', () => {
    const lock = inscriptionScript({ contentType, body })
    const later = inscriptionScript({ lock, contentType: 'text/html', body: utf8('later') })
    expect(readInscription(later).content).toEqual(fromEnvelope)
  })
})

describe('the metadata of an output', () => {
  const set = (key: string, value: string) => ({ command: 'SET', entries: [[key, value]] })
  const mapField = (...text: string[]) => ({
    tag: utf8(MAP_MARKER),
    value: joinBytes(text.map((word) => encodePush(utf8(word)))),
  })

  test('stands after the OP_RETURN, in as many parts as there are', () => {
    const all = [`${MAP_MARKER} SET a 1`, 'other SET b 2', `${MAP_MARKER} FLY c 3`, `${MAP_MARKER} REMOVE a`]
    const tail = bitcomTail(...all.map((protocol) => protocol.split(' ')))
    const removed = { command: 'REMOVE', keys: ['a'] }
    expect(readInscription(concatBytes(p2pkh(1), tail)).map).toEqual([set('a', '1'), removed])
  })

  test('stands in the last such tag of the envelope too, and comes first', () => {
    const fields = [mapField('SET', 'x', 'y'), mapField('SET', 'a', '1', ':::', 'ADD', 'b', '2', ':::')]
    const script = concatBytes(encodeEnvelope({ contentType, fields, body }), mapTail({ c: '3' }))
    expect(readInscription(script)).toMatchObject({
      content: fromEnvelope,
      map: [set('a', '1'), { command: 'ADD', key: 'b', values: ['2'] }, set('c', '3')],
    })
  })

  test('has an end, however much the envelope holds', () => {
    const script = encodeEnvelope({ fields: [mapField('SET', ...new Array(20_000).fill('x'))] })
    const commands = readInscription(script).map
    expect(commands.map((command) => command.command === 'SET' && command.entries.length)).toEqual([4999])
  })
})

test('a parent is read from the envelope', () => {
  const parent = { txid: '12'.repeat(32), vout: 3 }
  expect(readInscription(inscriptionScript({ parent, contentType, body })).parent).toEqual(parent)
  expect(readInscription(inscriptionScript({ contentType, body })).parent).toBeUndefined()
})

const HASH = '12'.repeat(20)
const P2PKH = fromHex(`76a914${HASH}88ac`)
const OWNED = encodeEnvelope({ contentType, body })
const TAGGED = encodeEnvelope({ fields: [{ tag: utf8(MAP_MARKER), value: utf8('x') }], body })

test.each([
  ['a lock alone', [P2PKH], HASH],
  ['a lock before an envelope', [P2PKH, OWNED], HASH],
  ['a lock behind an envelope', [OWNED, P2PKH], HASH],
  ['a separator between an envelope and a lock', [OWNED, fromHex('ab'), P2PKH], HASH],
  ['a separator between a lock and an envelope', [P2PKH, fromHex('ab'), OWNED], HASH],
  ['a separator and MAP behind the lock', [OWNED, fromHex('ab'), P2PKH, mapTail({ a: '1' })], HASH],
  ['MAP behind a lock', [P2PKH, mapTail({ a: '1' })], HASH],
  ['an OP_RETURN with nothing behind a lock', [P2PKH, bitcomTail()], HASH],
  ['an envelope with a MAP tag', [TAGGED, P2PKH], HASH],
  ['a lock on each side', [P2PKH, OWNED, P2PKH], undefined],
  ['more than a lock', [OWNED, fromHex('ab51'), P2PKH], undefined],
  ['no lock', [OWNED], undefined],
  ['another opcode behind the lock', [P2PKH, fromHex('61')], undefined],
  ['a second envelope', [P2PKH, OWNED, OWNED], undefined],
  ['a lock around the envelope', [P2PKH.subarray(0, 3), OWNED, P2PKH.subarray(3)], undefined],
  ['a lock in the OP_RETURN', [fromHex('6a'), P2PKH], undefined],
  ['OP_FALSE OP_RETURN, which nobody can spend', [P2PKH, fromHex('00'), bitcomTail()], undefined],
  ['a script hash', [fromHex(`a914${HASH}87`)], undefined],
  ['a hash of 19 bytes', [fromHex(`76a913${HASH.slice(2)}88ac`)], undefined],
])('the owner of %s', (_, parts, owner) => {
  expect(readInscription(joinBytes(parts)).owner).toBe(owner)
})

test('a node of the mine tree carries nothing', () => {
  const chain = new FakeChain({ codeSize: 6000 })
  for (const { lockingScript } of chain.mint('a').transaction.outputs.slice(0, 2)) {
    expect(readInscription(lockingScript)).toEqual({ content: undefined, parent: undefined, map: [] })
  }
})

test('any bytes are read without an error', () => {
  const full = inscriptionScript({ contentType, body, suffix: mapTail({ a: '1' }) })
  fc.assert(
    fc.property(fc.oneof(bytes(), mutated(fc.constant(full))), (script) => void readInscription(script)),
    { numRuns: 300 },
  )
})

test.each([
  ['one-byte pushes after an OP_RETURN', '6a', '51'],
  ['MAP parts after an OP_RETURN', '6a', '017c0161'],
  ['a body', '0063036f726400', '51'],
  ['tags', '0063036f7264', '5151'],
  ['envelopes that never end', '', '0063036f7264'],
  ['envelopes that are none', '', '0063036f726451'],
  ['bodies that never end', '', '0063036f726400'],
  ['IFs', '', '0063'],
])('%s, however many, are read in two passes', (_, start, unit) => {
  const part = fromHex(unit)
  const script = joinBytes([fromHex(start), ...new Array(Math.floor(200_000 / part.length)).fill(part)])
  expect(() => readInPasses(2, script, readInscription)).not.toThrow()
})
