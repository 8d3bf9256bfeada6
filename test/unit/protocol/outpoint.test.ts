import fc from 'fast-check'
import {
  decodeOutpoint,
  encodeOutpoint,
  formatOutpoint,
  PointerError,
  parseContentReference,
  parseOutpoint,
  readPointer,
} from '../../../backend/src/protocol/outpoint.js'
import { bytes, outpoint } from '../../support/protocol/arbitraries.js'

const TXID = `${'0123456789abcdef'.repeat(3)}fedcba9876543210`
const UPPER = TXID.toUpperCase()
const NOT_OUTPOINTS = [
  ...[
    '',
    '_',
    '_0',
    ` ${TXID}_1`,
    `${TXID.slice(1)}_1`,
    `0${TXID}_1`,
    `${TXID.slice(1)}g_1`,
    `ord://${TXID}_1`,
  ],
  ...['', '_', '_-1', '_+1', '_01', '_00', '_1.0', '_1e3', '_4294967296', '_99999999999', '_1 ', '_1\n', '_٣']
    .concat([':1', 'i', 'i01', 'I1', '_i1', '__1'])
    .map((end) => `${TXID}${end}`),
]

describe('an outpoint as text', () => {
  test.each([
    [`${TXID}_0`, 0],
    [`${TXID}.0`, 0],
    [`${TXID}i0`, 0],
    [`${UPPER}_7`, 7],
    [`${TXID}_4294967295`, 4294967295],
  ])('%s is read', (text, vout) => {
    expect(parseOutpoint(text)).toEqual({ txid: TXID, vout })
  })

  test.each(NOT_OUTPOINTS)('%j is refused', (text) => {
    expect(() => parseOutpoint(text)).toThrow(expect.objectContaining({ code: 'BAD_OUTPOINT', text }))
    expect(() => parseOutpoint(text)).toThrow(PointerError)
  })

  test('reads back as it was written', () => {
    fc.assert(fc.property(outpoint, (any) => void expect(parseOutpoint(formatOutpoint(any))).toEqual(any)))
  })

  test('is shown short where it is long, and kept whole', () => {
    const text = 'x'.repeat(1_000_000)
    expect(() => parseOutpoint(text)).toThrow(expect.objectContaining({ text }))
    expect(() => parseOutpoint(text)).toThrow(/^not an outpoint: "x{100}…"$/)
  })
})

describe('an outpoint as bytes', () => {
  test('is the txid in internal order and the output little-endian', () => {
    const encoded = encodeOutpoint({ txid: `${'00'.repeat(31)}01`, vout: 0x01020304 })
    expect(encoded).toEqual(Uint8Array.of(1, ...new Array(31).fill(0), 4, 3, 2, 1))
  })

  test('reads back as it was written, from a view too', () => {
    fc.assert(
      fc.property(outpoint, (any) => {
        const view = Uint8Array.of(255, ...encodeOutpoint(any), 255).subarray(1, 37)
        expect(decodeOutpoint(view)).toEqual(any)
      }),
    )
  })

  test('of any other length is refused', () => {
    fc.assert(
      fc.property(
        bytes(80).filter(({ length }) => length !== 36),
        (other) => {
          expect(() => decodeOutpoint(other)).toThrow(RangeError)
        },
      ),
    )
  })
})

describe('a pointer', () => {
  const absolute = { kind: 'outpoint', outpoint: { txid: TXID, vout: 2 } }
  const transaction = { kind: 'transaction', txid: TXID }
  const sibling = { kind: 'sibling', vout: 12 }

  test.each([
    [`${TXID}_2`, absolute],
    [`${TXID}.2`, absolute],
    [`ord://${UPPER}_2`, absolute],
    [UPPER, transaction],
    [`ord://${TXID}`, transaction],
    ['_12', sibling],
    ['ord://_12', sibling],
    ['_4294967295', { kind: 'sibling', vout: 4294967295 }],
  ])('%s is read', (text, pointer) => {
    expect(readPointer(text)).toEqual(pointer)
  })

  test.each([
    // White space around a pointer is trimmed.
    ...NOT_OUTPOINTS.filter(
      (text) => ![TXID, '_0', `${TXID}_1`].includes(text.trim()) && !text.startsWith('ord:'),
    ),
    `ord://ord://${TXID}`,
    `ORD://${TXID}`,
    'ord://',
    '_01',
    '_-1',
    '.1',
    '_4294967296',
    `/${TXID}`,
  ])('%j is refused', (text) => {
    expect(readPointer(text)).toBeUndefined()
  })
})

describe('a reference to content', () => {
  test.each([
    ['', undefined],
    [':0', 0],
    [':1', 1],
    [':-1', -1],
    [':-2', -2],
    [':9007199254740991', Number.MAX_SAFE_INTEGER],
  ])('may end in %j', (suffix, sequence) => {
    const outpointForm = { kind: 'outpoint', outpoint: { txid: TXID, vout: 5 } }
    expect(parseContentReference(`${UPPER}_5${suffix}`)).toEqual({ pointer: outpointForm, sequence })
    expect(parseContentReference(`${TXID}.5${suffix}`)).toEqual({ pointer: outpointForm, sequence })
    const pointer = { kind: 'transaction', txid: TXID }
    expect(parseContentReference(`${TXID}${suffix}`)).toEqual({ pointer, sequence })
  })

  const large = ['9007199254740992', '99999999999999999']
  test.each(['', '-0', '+1', '01', '-3', '-01', '1.5', '1e3', 'x', '1:2', ' 1', '1\n', ...large])(
    'may not have the sequence %j',
    (text) => {
      const parse = () => parseContentReference(`${TXID}_5:${text}`)
      expect(parse).toThrow(expect.objectContaining({ name: 'PointerError', code: 'BAD_SEQUENCE', text }))
    },
  )

  const none = ['', ':0', '_5', '_5:0', `ord://${TXID}_5`, `${TXID}_05:x`, `${TXID}_5/a`]
  test.each(none)('may not be %j', (text) => {
    const refusal = expect.objectContaining({ code: 'BAD_OUTPOINT', text })
    expect(() => parseContentReference(text)).toThrow(refusal)
  })
})

test('any text is read or refused with a PointerError', () => {
  const nearly = fc
    .tuple(
      fc.constantFrom('', 'ord://', TXID, `${TXID}_`, '_'),
      fc.string(),
      fc.constantFrom('', ':', '0', ':-1'),
    )
    .map((parts) => parts.join(''))
  fc.assert(
    fc.property(nearly, (text) => {
      for (const parse of [parseOutpoint, readPointer, parseContentReference]) {
        try {
          parse(text)
        } catch (error) {
          expect(error).toBeInstanceOf(PointerError)
        }
      }
    }),
  )
})
