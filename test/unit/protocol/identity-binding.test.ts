import { decode, encode } from '@ipld/dag-cbor'
import fc from 'fast-check'
import { concatBytes, fromHex, toHex, utf8 } from '../../../backend/src/protocol/bytes.js'
import { confusablesAmong, lookalikesOf, skeletonOf } from '../../../backend/src/protocol/confusable-names.js'
import { encodeDagCbor, encodeDagCborMap, readDagCborMap } from '../../../backend/src/protocol/dag-cbor.js'
import {
  bindingFields,
  hasUnknownFields,
  isCanonical,
  readBinding,
  type UnverifiedBinding,
} from '../../../backend/src/protocol/identity-binding.js'
import { readPushDrop } from '../../../backend/src/protocol/push-drop.js'
import { encodePush } from '../../../backend/src/protocol/script-walk.js'

const key = fromHex(`02${'11'.repeat(32)}`)
const outpoint = { txid: 'ef'.repeat(32), vout: 7 }

/** A lock with these fields and a signature of nobody. */
function scriptWith(fields: readonly Uint8Array[]): Uint8Array {
  const all = [...fields, utf8('signature')]
  const drops = all.map(() => Uint8Array.of(0x75))
  return concatBytes(encodePush(key), Uint8Array.of(0xac), ...all.map(encodePush), ...drops)
}

const read = (fields: readonly Uint8Array[]): UnverifiedBinding => {
  const binding = readBinding(scriptWith(fields))
  if (binding === undefined) throw new Error('this is no binding')
  return binding
}

describe('DAG-CBOR', () => {
  const value = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.string({ unit: 'grapheme' }),
      fc.uint8Array({ maxLength: 300 }),
      fc.integer(),
      fc.boolean(),
      fc.constant(null),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.array(tie('value'), { maxLength: 30 }),
      fc.dictionary(fc.string(), tie('value')),
    ),
  })).value

  test('what the library encodes is read as the library reads it, and written as it was', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), value), (map) => {
        const bytes = encode(map)
        const members = readDagCborMap(bytes)
        expect(new Map(members?.map((member) => [member.key, decode(member.encoded)]))).toEqual(
          new Map(Object.entries(decode<object>(bytes))),
        )
        for (const { value, encoded } of members ?? [])
          if (value !== undefined) expect(toHex(encodeDagCbor(value))).toBe(toHex(encoded))
        expect(toHex(encodeDagCborMap(members ?? []))).toBe(toHex(bytes))
      }),
    )
  })

  test('nothing that the library refuses is read, and anything may be tried', () => {
    const damaged = fc
      .tuple(fc.dictionary(fc.string(), value), fc.nat(), fc.nat(255), fc.nat(3))
      .map(([map, at, byte, cut]) => {
        const bytes = encode(map)
        bytes[at % bytes.length] = byte
        return bytes.slice(0, bytes.length - cut)
      })
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array({ maxLength: 200 }), damaged), (bytes) => {
        if (readDagCborMap(bytes) !== undefined) expect(() => decode(bytes)).not.toThrow()
      }),
    )
  })
})

describe('what is not known', () => {
  const replacement = {
    identityKey: fromHex(`03${'22'.repeat(32)}`),
    profile: { name: 'Bob', avatar: outpoint },
  }

  test('stays in its slot when a binding by position is replaced', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ minLength: 1, maxLength: 40 }), { maxLength: 9 }), (later) => {
        const before = read([
          key,
          utf8('Al'),
          new Uint8Array(),
          ...later.map((each) => concatBytes(each, key)),
        ])
        const fields = bindingFields({ layout: 'positional', ...replacement, replaces: before })
        expect(fields.slice(3)).toEqual(before.fields.slice(3))
        const { profile } = replacement
        expect(read(fields)).toMatchObject({ identityKey: `03${'22'.repeat(32)}`, profile })
        expect(hasUnknownFields(before)).toBe(later.length > 0)
      }),
    )
  })

  test('stays in its place, and in the profile, when a binding by key and value is replaced', () => {
    const pair = fc.tuple(fc.uint8Array({ minLength: 9, maxLength: 12 }), fc.uint8Array({ maxLength: 40 }))
    const pairs = fc.array(pair, { maxLength: 3 })
    const member = fc.oneof(fc.integer(), fc.string(), fc.constant({ a: [null] }))
    const members = fc.dictionary(fc.string({ minLength: 12 }), member)
    fc.assert(
      fc.property(pairs, pairs, members, (some, more, kept) => {
        const profile = encode({ ...kept, domain: 'a.example', displayName: 'Al' })
        const [identity, said] = [utf8('identity'), utf8('profile')]
        const before = read([...some.flat(), identity, key, ...more.flat(), said, profile])
        expect(before.profile).toEqual({ domain: 'a.example', name: 'Al' })
        const fields = bindingFields({ layout: 'key-value', ...replacement, replaces: before })
        const others = (all: readonly Uint8Array[]) => all.slice(0, -1).toSpliced(2 * some.length + 1, 1)
        expect(others(fields)).toEqual(others(before.fields))
        expect(decode(fields.at(-1) ?? key)).toMatchObject({ ...kept, name: 'Bob' })
        expect(Object.keys(decode<object>(fields.at(-1) ?? key))).toHaveLength(Object.keys(kept).length + 2)
        expect(hasUnknownFields(before)).toBe(some.length + more.length + Object.keys(kept).length > 0)
      }),
    )
  })

  test('a profile that cannot be read is kept whole where no other is given, and goes with the layout', () => {
    const before = read([utf8('identity'), key, utf8('profile'), utf8('?')])
    const identityKey = key
    const kept = { profile: {}, replaces: before }
    expect(bindingFields({ layout: 'key-value', identityKey, ...kept })).toEqual(before.fields)
    expect(hasUnknownFields(before)).toBe(true)
    // Of another holder it is not: a reader that can read it would take it for what the new one says.
    expect(bindingFields({ layout: 'key-value', ...replacement, ...kept })).toHaveLength(2)
    expect(() => bindingFields({ layout: 'positional', identityKey, ...kept })).toThrow(RangeError)
  })

  test('does not include what another holder says in one of several profiles', () => {
    const said = [utf8('profile'), encode({ domain: 'evil.example' })]
    const before = read([utf8('identity'), key, ...said, ...said])
    expect(before.profile).toEqual({})
    const { identityKey } = replacement
    const replaced = (profile: UnverifiedBinding['profile']): UnverifiedBinding =>
      read(bindingFields({ layout: 'key-value', identityKey, profile, replaces: before }))
    expect(replaced({}).profile).toEqual({})
    expect(replaced({ domain: 'b.example' }).profile).toEqual({ domain: 'b.example' })
  })
})

/** The same bytes, divided at other places; places that are the same leave an empty field between. */
function divided(bytes: Uint8Array, cuts: readonly number[]): Uint8Array[] {
  const places = cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b)
  return [...places, bytes.length].map((end, at) => bytes.subarray(places[at - 1] ?? 0, end))
}

describe('the bytes that somebody signed, divided in another way by somebody else,', () => {
  const name = fc
    .string({ unit: 'grapheme', minLength: 1, maxLength: 60 })
    .filter((text) => text.trim() !== '' && !/\p{Cc}/u.test(text))
  const avatar = fc.record({
    txid: fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes).toString('hex')),
    vout: fc.integer({ min: 0, max: 0xffff }),
  })
  const optional = <Value>(value: fc.Arbitrary<Value>): fc.Arbitrary<Value | undefined> =>
    fc.option(value, { nil: undefined })
  const withoutUndefined = <Fields extends object>(fields: Fields): Fields =>
    Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Fields
  const profiles = {
    positional: fc.record({ name: optional(name), avatar: optional(avatar) }).map(withoutUndefined),
    'key-value': fc
      .record({ domain: fc.constant('a.example'), name: optional(name), avatar: optional(avatar) })
      .map(withoutUndefined),
  }

  test.each(['positional', 'key-value'] as const)('say the same or bind nothing: %s', (layout) => {
    const head = layout === 'positional' ? [33] : ['identity'.length, 'identity'.length + 33]
    const after = head.at(-1) as number
    const cutting = fc.record({
      ...{ profile: profiles[layout], asZeros: fc.boolean(), keepsKey: fc.boolean() },
      cuts: fc.array(fc.nat(), { maxLength: 7 }),
    })
    fc.assert(
      fc.property(cutting, ({ profile, asZeros, cuts, keepsKey }) => {
        const given = { layout, identityKey: key, profile } as Parameters<typeof bindingFields>[0]
        const fields = bindingFields(given).map((field) =>
          asZeros && field.length === 0 ? Uint8Array.of(0) : field,
        )
        expect(isCanonical(read(fields), fields)).toBe(true)
        expect(read(fields).profile).toEqual(profile)
        const bytes = concatBytes(...fields)
        const behind = cuts.map((cut) => after + (cut % (bytes.length - after + 1)))
        const recut = divided(bytes, keepsKey ? [...head, ...behind] : cuts)
        const binding = readBinding(scriptWith(recut))
        if (binding === undefined || !isCanonical(binding, recut)) return
        expect(binding.profile).toEqual(profile)
      }),
      { numRuns: 500 },
    )
  })
})

test('any script may be read, and a lock that is read ends with what cannot run', () => {
  const lock = scriptWith([key, utf8('Al')])
  const bytes = fc.uint8Array({ maxLength: 40 })
  fc.assert(
    fc.property(bytes, fc.nat(lock.length), (tail, cut) => {
      readBinding(tail)
      readBinding(concatBytes(lock.slice(0, cut), tail))
      if (readPushDrop(concatBytes(lock, tail)) !== undefined && tail.length > 0)
        expect([0x00, 0x6a]).toContain(tail[0])
    }),
  )
})

describe('names that look alike', () => {
  test.each([
    ['brandon', 'brand0n'],
    ['mail', 'rnail'],
    ['mail', 'mai1'],
    ['will', 'vvi1l'],
    ['acme', 'ac-me'],
    ['b2s', '8z5'],
    ['corner', 'c0-r-n-er'],
  ])('%s and %s', (one, other) => {
    expect(skeletonOf(one)).toBe(skeletonOf(other))
    expect(confusablesAmong(one, [one, other, other, 'another'])).toEqual([other])
  })

  test('are listed up to a limit, each with the same skeleton', () => {
    expect(lookalikesOf('rn-o', 9)).toEqual(['m-o', 'rno', 'rn-0'])
    const name = fc.stringMatching(/^[a-z0-9-]{1,20}$/)
    fc.assert(
      fc.property(name, fc.nat(12), (each, limit) => {
        const found = lookalikesOf(each, limit)
        expect(found.length).toBeLessThanOrEqual(limit)
        expect(confusablesAmong(each, found)).toEqual(found)
      }),
    )
  })
})
