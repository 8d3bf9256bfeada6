import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { fromHex, toHex, utf8 } from '../../../backend/src/protocol/bytes.js'
import type { Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { baseOf, encodePatch, patchChain, patched, patchPart } from '../../../backend/src/protocol/patch.js'
import { applyDelta, DeltaError, encodeDelta, targetLength } from '../../../backend/src/protocol/vcdiff.js'
import { bytes, edits, mutated, outpoint } from '../../support/protocol/arbitraries.js'
import { type DeltaWindow, delta } from '../../support/protocol/deltas.js'

/** Made by xdelta3. */
const vectors: {
  deltas: { name: string; length: number; sha256: string; delta: string }[]
  refused: { name: string; delta: string }[]
} = JSON.parse(readFileSync('test/vectors/deltas.json', 'utf8'))
const lines = utf8(Array.from({ length: 1500 }, (_, i) => `line ${i} ${(i * 7919) % 1000}\n`).join(''))

function done<Value>(steps: Generator<void, Value>): { value: Value; steps: number } {
  for (let taken = 0; ; taken++) {
    const step = steps.next()
    if (step.done) return { value: step.value, steps: taken }
  }
}

const apply = (bytes: Uint8Array, source: Uint8Array): Uint8Array =>
  done(applyDelta(bytes, source, targetLength(bytes, source.length))).value

describe('a delta of xdelta3', () => {
  test.each(vectors.deltas)('$name', ({ delta, length, sha256 }) => {
    const target = apply(Buffer.from(delta, 'base64'), lines)
    expect(target.length).toBe(length)
    expect(createHash('sha256').update(target).digest('hex')).toBe(sha256)
  })

  test.each(vectors.refused)('$name is refused', ({ delta }) => {
    expect(() => apply(Buffer.from(delta, 'base64'), new Uint8Array())).toThrow(DeltaError)
  })
})

/** On the source `abcdefgh`. */
const SOURCE = '01 08 00'
const S = { segment: SOURCE }
const WRONG_LENGTH = 'not as long as the window'
const ONE = { makes: 1, data: '61', codes: '02' }
const made: Record<string, [made: string, ...windows: DeltaWindow[]]> = {
  'an add': ['xyz', { makes: 3, data: '78797a', codes: '04' }],
  'an add with its size behind': ['xyz', { makes: 3, data: '78797a', codes: '01 03' }],
  'a size of two digits': ['z'.repeat(200), { makes: 200, data: '7a', codes: '00 8148' }],
  'a size with zeros before it': ['zz', { makes: 2, data: '7a', codes: '00 80808002' }],
  'a run': ['zzzzz', { makes: 5, data: '7a', codes: '00 05' }],
  'a run of nothing': ['', { makes: 0, data: '7a', codes: '00 00' }],
  'a copy': ['cdef', { segment: SOURCE, makes: 4, codes: '14', addresses: '02' }],
  'a copy with its size behind': ['bc', { segment: SOURCE, makes: 2, codes: '13 02', addresses: '01' }],
  'a copy from a part': ['efgh', { segment: '01 04 04', makes: 4, codes: '14', addresses: '00' }],
  'a copy from here': ['abcd', { segment: SOURCE, makes: 4, codes: '24', addresses: '08' }],
  'near addresses': ['bcdecdef', { segment: SOURCE, makes: 8, codes: '14 34', addresses: '01 01' }],
  'the fifth address in place of the first': [
    'abbccddeeffg',
    { segment: SOURCE, makes: 12, codes: '1302 1302 1302 1302 1302 3302', addresses: '00 01 02 03 04 01' },
  ],
  'the same address': ['efefgh', { segment: SOURCE, makes: 6, codes: '1302 74', addresses: '04 04' }],
  'a copy from the source into the target': ['ghghgh', { ...S, makes: 6, codes: '16', addresses: '06' }],
  'a copy of what it makes': ['xyxyxyxyx', { makes: 9, data: '7879', codes: '03 13 07', addresses: '00' }],
  'an add with a copy': ['zabcd', { segment: SOURCE, makes: 5, data: '7a', codes: 'a3', addresses: '00' }],
  'a copy with an add': ['bcdez', { segment: SOURCE, makes: 5, data: '7a', codes: 'f7', addresses: '01' }],
  'a copy from what came out before': [
    'xyzxyz-',
    { makes: 3, data: '78797a', codes: '04' },
    { segment: '02 03 00', makes: 4, data: '2d', codes: '1303 02', addresses: '00' },
  ],
  'a new window, whose cached addresses are none': [
    'bcdebcabcd',
    { segment: SOURCE, makes: 4, codes: '14', addresses: '01' },
    { segment: SOURCE, makes: 6, codes: '1302 44', addresses: '01 00' },
  ],
  nothing: ['', { makes: 0 }],
}

test.each(Object.entries(made))('%s', (_, [text, ...windows]) => {
  expect(Buffer.from(apply(delta(...windows), utf8('abcdefgh'))).toString()).toBe(text)
})

const refused: Record<string, [problem: string, at: number, ...windows: DeltaWindow[]]> = {
  'no window': ['the delta is empty', 5],
  'an unknown indicator': ['the indicator of a window is 4', 5, { segment: '04', ...ONE }],
  'two segments': ['the indicator of a window is 3', 5, { segment: '03 01 00', makes: 0 }],
  'a segment beyond the source': ['copies from bytes up to 9 of 8', 5, { segment: '01 08 01', makes: 0 }],
  'a segment not made yet': ['copies from bytes up to 1 of 0', 5, { segment: '02 01 00', makes: 0 }],
  'a compressed window': ['a secondary compressor', 8, { makes: 0, compressed: 1 }],
  'a window that ends behind the delta': [WRONG_LENGTH, 5, { makes: 0, longer: 1 }],
  'a window that says to be shorter': [WRONG_LENGTH, 5, { ...ONE, longer: -1 }],
  'more than it says': ['more bytes than it declares', 14, { makes: 1, data: '6161', codes: '03' }],
  'less than it says': ['makes 1 bytes instead of 2', 14, { makes: 2, data: '61', codes: '02' }],
  'an add without data': ['unexpected end', 12, { makes: 1, codes: '02' }],
  'data without an add': ['data that no instruction uses', 13, { makes: 1, data: '6161', codes: '02' }],
  'a copy without an address': ['unexpected end', 15, { segment: SOURCE, makes: 4, codes: '14' }],
  'an address without a copy': ['addresses that no instruction', 12, { makes: 0, addresses: '00' }],
  'a copy from nothing': ['a copy from 0, where there are 0', 13, { makes: 4, codes: '14', addresses: '00' }],
  'a copy from later': [
    'a copy from 8, where there are 8',
    15,
    { ...S, makes: 4, codes: '14', addresses: '08' },
  ],
  'a copy from before the start': ['a copy from -1', 15, { ...S, makes: 4, codes: '24', addresses: '09' }],
  'a size that never ends': ['unexpected end', 16, { makes: 1, data: '61', codes: '00 8080' }],
  'a number of 2^31': ['a number of 2^31 or more', 14, { makes: 1, data: '61', codes: '00 8880808000' }],
  'a number of six digits': ['a number of 2^31 or more', 14, { ...ONE, codes: '00 808080808001' }],
}

test.each(Object.entries(refused))('%s is refused', (_, [problem, at, ...windows]) => {
  expect(() => apply(delta(...windows), utf8('abcdefgh'))).toThrow(
    expect.objectContaining({ code: 'BAD_DELTA', message: expect.stringContaining(problem), data: { at } }),
  )
})

test.each([
  ['', 0],
  ['d6c3c4', 3],
  ['d6c3c45300', 3],
  ['d6c3c40001', 4],
  ['d6c3c40002', 4],
  ['d6c3c40004', 4],
  ['25212e', 0],
])('the header %s is refused', (header, at) => {
  expect(() => targetLength(fromHex(header), 0)).toThrow(expect.objectContaining({ data: { at } }))
})

test('more than 10,000 windows are refused, and 10,000 are not', () => {
  const windows = Array.from({ length: 10_000 }, () => ({ makes: 1, data: '61', codes: '02' }))
  expect(apply(delta(...windows), new Uint8Array()).length).toBe(10_000)
  expect(() => targetLength(delta(...windows, { makes: 0 }), 0)).toThrow('more than 10000 windows')
})

test('a delta is known to be too long before anything is made of it', () => {
  const most = { makes: 2 ** 31 - 1, data: '61', codes: '00 87ffffff7f' }
  expect(targetLength(delta(most), 0)).toBe(2 ** 31 - 1)
  expect(() => targetLength(delta(most, most), 0)).toThrow('2^31 bytes or more')
})

test('what a delta encodes comes out again, and no other bytes crash it', () => {
  const alike = fc
    .tuple(bytes(2000), fc.array(edits, { maxLength: 6 }), fc.nat(4))
    .map(([source, all, times]) => {
      const repeated = Buffer.concat(Array.from({ length: times }, () => source))
      return { source, target: all.reduce<Uint8Array>((sum, edit) => edit(sum), repeated) }
    })
  fc.assert(
    fc.property(alike, ({ source, target }) => {
      expect(toHex(apply(encodeDelta(source, target), source))).toBe(toHex(target))
    }),
    { numRuns: 200 },
  )
  const broken = mutated(mutated(alike.map(({ source, target }) => encodeDelta(source, target))))
  fc.assert(
    fc.property(broken, bytes(2000), (delta, source) => {
      try {
        const length = targetLength(delta, source.length)
        if (length < 1_000_000) apply(delta, source)
      } catch (error) {
        expect(error).toBeInstanceOf(DeltaError)
      }
    }),
    { numRuns: 1000 },
  )
})

test('a delta of an edited text is short', () => {
  const edited = utf8(Buffer.from(lines).toString().replace('line 700 ', 'line seven hundred '))
  expect(encodeDelta(lines, edited).length).toBeLessThan(80)
})

describe('a patch', () => {
  const part = (name: string, bytes: Uint8Array) => patchPart({ txid: name.repeat(64), vout: 0 }, bytes)
  const patch = (base: string, bytes: Uint8Array) =>
    encodePatch({ base: { txid: base.repeat(64), vout: 0 }, delta: bytes })
  const root = part('a', utf8('abcdefgh'))
  const double = delta({ segment: SOURCE, makes: 16, codes: '1310', addresses: '00' })

  test('names its base', () => {
    const written = (base: Outpoint, bytes = double) => encodePatch({ base, delta: bytes })
    fc.assert(fc.property(outpoint, (base) => void expect(baseOf(written(base))).toEqual(base)))
    const one = { txid: '01'.padStart(64, '0'), vout: 7 }
    expect(toHex(written(one, fromHex('ff')))).toBe(`0001${'00'.repeat(31)}07000000ff`)
  })

  test.each([
    ['empty', '', 'shorter than 37 bytes'],
    ['one byte too short', '00'.repeat(36), 'shorter than 37 bytes'],
    ['of another version', `01${'00'.repeat(40)}`, 'the version of a patch is 1'],
  ])('that is %s is refused', (_, record, problem) => {
    expect(() => baseOf(fromHex(record))).toThrow(
      expect.objectContaining({ code: 'BAD_PATCH', message: expect.stringContaining(problem) }),
    )
  })

  test('is applied to what the one before it makes', () => {
    const chain = [
      root,
      part('b', patch('a', double)),
      part('c', patch('b', delta({ makes: 4, segment: '01 10 00', codes: '14', addresses: '0c' }))),
    ]
    expect(Buffer.from(done(patched(chain, 100)).value).toString()).toBe('efgh')
  })

  test.each([
    ['makes more than is allowed', 100, '00 64', 99, 'makes 100 bytes, and 99 are allowed'],
    ['takes too much work', 17, '00 11', 17, 'more than 68 bytes of work'],
  ])('that %s is refused', (_, makes, codes, most, problem) => {
    const large = delta({ makes, data: '61', codes })
    expect(() => done(patched([root, part('b', patch('a', large))], most))).toThrow(
      expect.objectContaining({ code: 'PATCH_TOO_LARGE', message: expect.stringContaining(problem) }),
    )
  })

  test('that cannot be applied is named', () => {
    expect(() => done(patched([root, part('b', patch('a', delta()))], 100))).toThrow(
      expect.objectContaining({ code: 'BAD_PATCH', message: expect.stringContaining(`${'b'.repeat(64)}_0`) }),
    )
  })

  test('may be the sixteenth on content, and no more', () => {
    const before = (at: number): number | undefined => (at === 0 ? undefined : at - 1)
    expect(patchChain(16, before)).toEqual(Array.from({ length: 17 }, (_, at) => at))
    expect(() => patchChain(17, before)).toThrow('more than 16 patches')
  })

  test('of a long body is made in steps', () => {
    const long = new Uint8Array(4 * 1024 * 1024)
    const run = delta({ makes: long.length, data: '00', codes: '00 8280 8000' })
    const repeated = delta({ makes: long.length, data: '6162', codes: '03 13 81ffff7e', addresses: '00' })
    for (const each of [run, repeated]) {
      const { value, steps } = done(applyDelta(each, long, targetLength(each, long.length)))
      expect(value.length).toBe(long.length)
      expect(steps).toBeGreaterThan(10)
    }
  })
})
