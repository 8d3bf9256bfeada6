import fc from 'fast-check'
import { MAP_MARKER } from '../../../backend/src/protocol/bitcom.js'
import { ascii, concatBytes, fromHex, joinBytes, toHex, utf8 } from '../../../backend/src/protocol/bytes.js'
import { encodeEnvelope, readEnvelope } from '../../../backend/src/protocol/inscription.js'
import { encodeOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { encodePush } from '../../../backend/src/protocol/script-walk.js'
import { bytes, outpoint } from '../../support/protocol/arbitraries.js'
import { p2pkh } from '../../support/protocol/fake-chain.js'

/** `OP_FALSE OP_IF "ord"`, and the rest given as hex. */
const envelope = (...rest: string[]): Uint8Array => fromHex(`0063036f7264${rest.join('')}`)
const push = (data: Uint8Array | string): string =>
  toHex(encodePush(typeof data === 'string' ? utf8(data) : data))
const PLAIN = push('text/plain')
const HELLO = push('hello')
const BODY = ascii('hello')
const PARENT = { txid: 'ab'.repeat(32), vout: 7 }

describe('an envelope', () => {
  const whole = envelope('51', PLAIN, '00', HELLO, '68')

  test.each([
    ['alone', whole],
    ['after a lock', concatBytes(p2pkh(1), whole)],
    ['before a lock', concatBytes(whole, p2pkh(1))],
    ['before an OP_RETURN', concatBytes(whole, fromHex('6a0161'))],
    ['inside an IF', concatBytes(fromHex('5163'), whole, fromHex('68'))],
    ['after an OP_RETURN inside an IF', concatBytes(fromHex('00636a68'), whole)],
    ['before a push that breaks off', concatBytes(whole, fromHex('05aa'))],
    ['with a longer push of `ord`', concatBytes(fromHex('00634c036f7264'), whole.subarray(6))],
  ])('counts %s', (_, script) => {
    expect(readEnvelope(script).envelope).toMatchObject({ contentType: 'text/plain', body: BODY })
  })

  test.each([
    ['after an OP_RETURN', concatBytes(fromHex('6a'), whole)],
    ['after an OP_RETURN at the end of an IF', concatBytes(fromHex('5163686a'), whole)],
    ['without an OP_ENDIF', whole.subarray(0, -1)],
    ['cut off in the body', whole.subarray(0, -3)],
    ['with code among the tags', envelope('51', PLAIN, '76', '00', HELLO, '68')],
    ['with code for a value', envelope('5176', '00', HELLO, '68')],
    ['with code in the body', envelope('51', PLAIN, '00', HELLO, '76', HELLO, '68')],
    ['of another word', concatBytes(fromHex('0063036f7265'), whole.subarray(6))],
    ['behind OP_TRUE', concatBytes(fromHex('51'), whole.subarray(1))],
    ['in a push', encodePush(whole)],
    ['behind OP_FALSE and something else', concatBytes(fromHex('0061'), whole.subarray(1))],
  ])('does not count %s', (_, script) => {
    expect(readEnvelope(script).envelope).toBeUndefined()
  })

  test('is looked for after one that is none', () => {
    for (const none of [envelope('51', PLAIN, '76'), envelope('00', HELLO), envelope('51')]) {
      expect(readEnvelope(concatBytes(none, whole)).envelope?.body).toEqual(BODY)
    }
  })

  test('is the first one, the later ignored', () => {
    const later = envelope('51', push('text/html'), '00', push('later'), '68')
    expect(readEnvelope(concatBytes(whole, p2pkh(1), later)).envelope?.body).toEqual(BODY)
    expect(readEnvelope(concatBytes(envelope('68'), later)).envelope).toEqual({ fields: [] })
  })
})

describe('the body', () => {
  test.each([
    ['no OP_0', '', undefined],
    ['nothing', '00', ''],
    ['one empty push', '0000', ''],
    ['one push', '0002aabb', 'aabb'],
    ['several pushes', '0002aabb0001cc4c01dd', 'aabbccdd'],
    ['number opcodes', '00514f60', '018110'],
    ['one number opcode', '0055', '05'],
  ])('of %s', (_, pushes, body) => {
    const read = readEnvelope(envelope('51', PLAIN, pushes, '68')).envelope
    expect(read?.contentType).toBe('text/plain')
    expect(read?.body && toHex(read.body)).toBe(body)
  })

  test('in one push is a view into the script', () => {
    const script = envelope('00', HELLO, '68')
    expect(readEnvelope(script).envelope?.body?.buffer).toBe(script.buffer)
  })

  test('of millions of pushes is joined', () => {
    const script = joinBytes([envelope('00'), new Uint8Array(3_000_000).fill(0x52), fromHex('68')])
    const body = readEnvelope(script).envelope?.body
    expect(body).toHaveLength(3_000_000)
    expect(body?.every((byte) => byte === 2)).toBe(true)
  })
})

describe('tags', () => {
  test('that mean nothing here are kept', () => {
    const script = envelope('5a', HELLO, '53', '0101', '03616263', '4f', '51', PLAIN, '00', '68')
    const { contentType, fields } = readEnvelope(script).envelope ?? {}
    expect(contentType).toBe('text/plain')
    expect(fields?.map(({ tag, value }) => [toHex(tag), toHex(value)])).toEqual([
      ['0a', toHex(BODY)],
      ['616263', '81'],
    ])
  })

  test('without a value are ignored', () => {
    const read = readEnvelope(envelope('51', PLAIN, '53', '68')).envelope
    expect(read?.contentType).toBe('text/plain')
    expect(read?.parent).toBeUndefined()
    expect(read?.body).toBeUndefined()
  })

  test('with OP_0 for a value have an empty one, and no body starts', () => {
    const read = readEnvelope(envelope('5500', '51', PLAIN, '68')).envelope
    expect(read?.fields).toHaveLength(1)
    expect(read?.contentType).toBe('text/plain')
    expect(read?.body).toBeUndefined()
  })

  test('past the thousandth are passed over', () => {
    const many = '550161'.repeat(1500)
    const read = readEnvelope(envelope(many, '51', PLAIN, '00', HELLO, '68')).envelope
    expect(read?.fields).toHaveLength(1000)
    expect(read?.contentType).toBe('text/plain')
    expect(read?.body).toEqual(BODY)
  })

  test.each([
    ['36 bytes', encodeOutpoint(PARENT), PARENT],
    ['32 bytes', encodeOutpoint(PARENT).subarray(0, 32), { ...PARENT, vout: 0 }],
    ['35 bytes', encodeOutpoint(PARENT).subarray(0, 35), undefined],
    ['37 bytes', new Uint8Array(37), undefined],
    ['no bytes', new Uint8Array(), undefined],
  ])('of a parent with %s', (_, value, parent) => {
    expect(readEnvelope(envelope('53', push(value), '00', '68')).envelope?.parent).toEqual(parent)
  })

  test.each([
    ['text', 'text/plain;charset=utf-8', true],
    ['text that is not ASCII', 'tëxt/☃', true],
    ['255 bytes', 'x'.repeat(255), true],
    ['256 bytes', 'x'.repeat(256), false],
    ['nothing', '', false],
  ])('of a content type with %s', (_, contentType, kept) => {
    const read = readEnvelope(envelope('51', push(contentType), '00', '68')).envelope
    expect(read?.contentType).toBe(kept ? contentType : undefined)
    expect(read?.body).toHaveLength(0)
  })
})

describe('the tail', () => {
  test.each([
    ['6a', 1],
    ['006a', 2],
    ['5163686a51', 4],
    ['51636a686a', 5],
    ['0063036f7264686a', 8],
    ['51636a', undefined],
    ['026a6a', undefined],
    ['056a', undefined],
    ['', undefined],
  ])('of %s', (hex, tail) => {
    expect(readEnvelope(fromHex(hex)).tail).toBe(tail)
  })
})

describe('each field', () => {
  const OUTPOINT = encodeOutpoint(PARENT)
  /** A tag of one byte in every form of a push, and as the opcode that pushes it. */
  const forms = (byte: number): [string, string][] => {
    const hex = byte.toString(16).padStart(2, '0')
    const opcode = byte === 0 ? '00' : (0x50 + byte).toString(16)
    return [
      ['an opcode', opcode],
      ['a push', `01${hex}`],
      ['a PUSHDATA1', `4c01${hex}`],
      ['a PUSHDATA2', `4d0100${hex}`],
      ['a PUSHDATA4', `4e01000000${hex}`],
    ]
  }
  const marker = toHex(utf8(MAP_MARKER))
  const map = (hex: string) => ({ hex: `01${hex}`, read: { map: fromHex(hex) } })
  const fields: {
    name: string
    tags: [form: string, hex: string][]
    values: Record<string, { hex: string; read: object }>
  }[] = [
    {
      name: 'content type',
      tags: forms(1),
      values: {
        good: { hex: PLAIN, read: { contentType: 'text/plain' } },
        other: { hex: push('image/png'), read: { contentType: 'image/png' } },
        'no UTF-8': { hex: push(Uint8Array.of(0xff)), read: { contentType: undefined } },
        'too long': { hex: push('x'.repeat(256)), read: { contentType: undefined } },
        empty: { hex: '00', read: { contentType: undefined } },
      },
    },
    {
      name: 'parent',
      tags: forms(3),
      values: {
        good: { hex: push(OUTPOINT), read: { parent: PARENT } },
        other: { hex: push(OUTPOINT.subarray(0, 32)), read: { parent: { ...PARENT, vout: 0 } } },
        'too short': { hex: '0101', read: { parent: undefined } },
      },
    },
    {
      name: 'MAP',
      tags: [
        ['a push', `22${marker}`],
        ['a PUSHDATA1', `4c22${marker}`],
        ['a PUSHDATA2', `4d2200${marker}`],
      ],
      values: { good: map('61'), other: map('62') },
    },
  ]
  const cases = fields.flatMap(({ name, tags, values }) =>
    tags.flatMap(([form, tag]) =>
      Object.entries(values).flatMap(([first, { hex: before }]) =>
        Object.entries(values).map(([last, { hex, read }]) => ({
          ...{ name, form, first, last, read },
          scripts: [
            [tag, tags[0]?.[1] ?? ''],
            [tags[0]?.[1] ?? '', tag],
          ].map(([one = '', two = '']) => envelope(one, before, '5a', HELLO, two, hex, '00', HELLO, '68')),
        })),
      ),
    ),
  )

  test.each(cases)('$name as $form, $first, then $last: the last counts', ({ scripts, read }) => {
    for (const script of scripts) expect(readEnvelope(script).envelope).toMatchObject({ ...read, body: BODY })
  })

  test.each([...forms(0), ['an empty PUSHDATA1', '4c00'], ['an empty PUSHDATA2', '4d0000']])(
    'the body behind %s',
    (_, tag) => {
      const read = readEnvelope(envelope('51', PLAIN, tag, HELLO, push(' again'), '68')).envelope
      expect(read).toEqual({ contentType: 'text/plain', body: ascii('hello again'), fields: [] })
      // What follows is body, whatever it looks like.
      expect(readEnvelope(envelope(tag, '51', PLAIN, '68')).envelope?.contentType).toBeUndefined()
    },
  )
})

test('an envelope reads back as it was written', () => {
  const field = fc.record({ tag: bytes(4).filter(({ length }) => length > 0), value: bytes(80) })
  const options = fc.record(
    {
      contentType: fc.string({ minLength: 1, maxLength: 60, unit: 'grapheme' }),
      parent: outpoint,
      fields: fc.array(
        field.filter(({ tag }) => tag.length !== 1 || ![0, 1, 3].includes(tag[0] ?? 0)),
        { maxLength: 4 },
      ),
      body: bytes(),
    },
    { requiredKeys: [] },
  )
  fc.assert(
    fc.property(options, (written) => {
      const { envelope: read } = readEnvelope(concatBytes(p2pkh(1), encodeEnvelope(written)))
      expect(read?.contentType).toBe(written.contentType)
      expect(read?.parent).toEqual(written.parent)
      expect(read?.body).toEqual(written.body)
      expect(read?.fields ?? []).toEqual(written.fields ?? [])
    }),
  )
})
