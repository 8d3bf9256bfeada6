import fc from 'fast-check'
import { vi } from 'vitest'
import { decodeMap, encodeMap, encodeMapState } from '../../../backend/src/graph/map-coder.js'
import {
  EMPTY_MAP,
  MAX_MAP_BYTES,
  type MapState,
  mapBytes,
  mapRecordOf,
  mergeMap,
  servedMap,
} from '../../../backend/src/graph/map-merge.js'
import { type MapCommand, readMapScript } from '../../../backend/src/protocol/bitcom.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'

/** A command as it is written: `SET a 1`. */
function commands(...lines: string[]): MapCommand[] {
  return lines.flatMap((line) => readMapScript(line.split(' ').map(utf8)))
}

const recordOf = (...lines: string[]) => ({ ...mapRecordOf(mergeMap(EMPTY_MAP, commands(...lines))) })

/** Two texts tell two states apart, order and all. */
function textOf(state: MapState): string {
  return JSON.stringify(
    [...state].map(([key, value]) => [key, typeof value === 'string' ? value : [...value]]),
  )
}

describe('metadata grows by', () => {
  test.each<[string, string[], Record<string, unknown>]>([
    ['nothing', [], {}],
    ['SET, of which the later wins', ['SET a 1 b 2', 'SET a 3'], { a: '3', b: '2' }],
    ['SET, of which the later wins in one command too', ['SET a 1 a 2'], { a: '2' }],
    ['SET to nothing, which is not REMOVE', ['SET a 1', 'SET a '], { a: '' }],
    ['SET in the place of a list', ['ADD a 1 2', 'SET a 3'], { a: '3' }],
    ['REMOVE', ['SET a 1 b 2 c 3', 'REMOVE a c'], { b: '2' }],
    ['REMOVE of a list', ['ADD a 1 2', 'REMOVE a'], {}],
    ['REMOVE, and SET again', ['SET a 1', 'REMOVE a', 'SET a 2'], { a: '2' }],
    ['ADD of one value, which is a list', ['ADD a 1'], { a: ['1'] }],
    ['ADD, at the end', ['ADD a 2', 'ADD a 1'], { a: ['2', '1'] }],
    ['ADD of what is there, which stays where it is', ['ADD a 1 2 1', 'ADD a 2 3'], { a: ['1', '2', '3'] }],
    ['ADD to a text, which comes first', ['SET a 1', 'ADD a 2'], { a: ['1', '2'] }],
    ['ADD to a text of the text itself', ['SET a 1', 'ADD a 1'], { a: ['1'] }],
    ['DELETE', ['ADD a 1 2 3', 'DELETE a 1 3'], { a: ['2'] }],
    ['DELETE of what is not there', ['ADD a 1', 'DELETE a 2', 'DELETE b 1'], { a: ['1'] }],
    ['DELETE of all, which leaves no key', ['ADD a 1 2', 'DELETE a 2 1'], {}],
    ['DELETE from a text, which stays', ['SET a 1', 'DELETE a 1'], { a: '1' }],
    ['DELETE and ADD again, at the end', ['ADD a 1 2', 'DELETE a 1', 'ADD a 1'], { a: ['2', '1'] }],
  ])('%s', (_, lines, record) => {
    expect(recordOf(...lines)).toEqual(record)
  })
})

describe('keys are a stranger’s:', () => {
  test.each(['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'length', '0', ''])(
    '%j is one as any other',
    (key) => {
      const set = (value: string): MapCommand => ({ command: 'SET', entries: [[key, value]] })
      const add: MapCommand = { command: 'ADD', key, values: ['y'] }
      const json = (list: MapCommand[]): string => JSON.stringify(mapRecordOf(mergeMap(EMPTY_MAP, list)))
      expect(json([set('x')])).toBe(`{${JSON.stringify(key)}:"x"}`)
      expect(json([add])).toBe(`{${JSON.stringify(key)}:["y"]}`)
      expect(json([set('x'), add])).toBe(`{${JSON.stringify(key)}:["x","y"]}`)
      expect(json([{ command: 'DELETE', key, values: ['y'] }])).toBe('{}')
      expect(json([set('x'), { command: 'REMOVE', keys: [key] }])).toBe('{}')
    },
  )

  test('a record has what was said and nothing else', () => {
    const record = mapRecordOf(mergeMap(EMPTY_MAP, commands('SET __proto__ x')))
    expect(Object.getPrototypeOf(record)).toBeNull()
    expect(record.constructor).toBeUndefined()
    expect(Object.prototype).not.toHaveProperty('x')
  })

  test('and so is what they parse to', () => {
    const entries: [string, string][] = [['royalties', '{"__proto__":{"polluted":1},"constructor":2}']]
    const { royalties } = mapRecordOf(mergeMap(EMPTY_MAP, [{ command: 'SET', entries }]))
    expect(JSON.stringify(royalties)).toBe('{"__proto__":{"polluted":1},"constructor":2}')
    expect(royalties).not.toHaveProperty('polluted')
  })
})

describe('JSON in text', () => {
  const served = (key: string, text: string): unknown =>
    mapRecordOf(mergeMap(EMPTY_MAP, [{ command: 'SET', entries: [[key, text]] }]))[key]

  test.each<[string, unknown]>([
    ['{"collectionId":"a_0","traits":[{"name":"x"}]}', { collectionId: 'a_0', traits: [{ name: 'x' }] }],
    ['[{"type":"address","percentage":"0.02"}]', [{ type: 'address', percentage: '0.02' }]],
    ['null', null],
    [' {} ', {}],
    ['', ''],
    ['{', '{'],
    ['\ufeff{}', '\ufeff{}'],
    ['{"a":"[[{{\\"]"}', { a: '[[{{"]' }],
  ])('%j is parsed where it parses', (text, value) => {
    for (const key of ['subTypeData', 'royalties']) expect(served(key, text)).toEqual(value)
    for (const key of ['name', 'subtypedata', 'Royalties', 'previewUrl']) expect(served(key, text)).toBe(text)
  })

  test('is parsed in a list too, each by itself', () => {
    expect(recordOf('ADD royalties {"a":1} no', 'ADD name {"a":1}')).toEqual({
      royalties: [{ a: 1 }, 'no'],
      name: ['{"a":1}'],
    })
  })

  test('stays a text where it nests deeper than a record can be written out', () => {
    const nested = (depth: number, open = '[', close = ']'): string =>
      open.repeat(depth) + close.repeat(depth)
    expect(served('royalties', nested(100))).toBeInstanceOf(Array)
    expect(served('royalties', nested(101))).toBe(nested(101))
    for (const text of [nested(30_000), nested(6000, '{"a":[', ']}'), '['.repeat(60_000)]) {
      const record = mapRecordOf(mergeMap(EMPTY_MAP, [{ command: 'SET', entries: [['royalties', text]] }]))
      expect(JSON.stringify(record)).toBe(JSON.stringify({ royalties: text }))
    }
  })

  test('any text can be served', () => {
    const text = fc.oneof(
      fc.json(),
      fc.string(),
      fc.json().map((json) => json.slice(1)),
    )
    fc.assert(
      fc.property(text, (any) => {
        const value = served('subTypeData', any)
        let parsed: unknown = any
        try {
          parsed = JSON.parse(any)
        } catch {
          // Then it is to stay what it is.
        }
        expect(JSON.stringify(value)).toBe(JSON.stringify(parsed))
      }),
    )
  })
})

describe('whatever the commands', () => {
  const word = fc.constantFrom('a', 'b', 'c', '__proto__', 'constructor', '')
  const words = fc.array(word, { minLength: 1, maxLength: 4 })
  const command: fc.Arbitrary<MapCommand> = fc.oneof(
    fc.record({
      command: fc.constant('SET' as const),
      entries: fc.array(fc.tuple(word, word), { minLength: 1 }),
    }),
    fc.record({ command: fc.constant('REMOVE' as const), keys: words }),
    fc.record({ command: fc.constant('ADD' as const), key: word, values: words }),
    fc.record({ command: fc.constant('DELETE' as const), key: word, values: words }),
  )
  const list = fc.array(command, { maxLength: 20 })

  test('merging in steps is merging at once', () => {
    fc.assert(
      fc.property(fc.array(list, { maxLength: 5 }), (parts) => {
        const steps = parts.reduce(mergeMap, EMPTY_MAP)
        expect(textOf(steps)).toBe(textOf(mergeMap(EMPTY_MAP, parts.flat())))
      }),
    )
  })

  test('what is merged into stays as it was', () => {
    fc.assert(
      fc.property(list, list, (before, after) => {
        const state = mergeMap(EMPTY_MAP, before)
        const text = textOf(state)
        const next = mergeMap(state, after)
        expect(textOf(state)).toBe(text)
        const nextText = textOf(next)
        mergeMap(state, before)
        expect(textOf(next)).toBe(nextText)
        expect(EMPTY_MAP.size).toBe(0)
      }),
    )
  })

  test('no list is empty or has twins, and REMOVE of all keys leaves nothing', () => {
    fc.assert(
      fc.property(list, (all) => {
        const state = mergeMap(EMPTY_MAP, all)
        for (const value of state.values())
          if (typeof value !== 'string') expect(value.size).toBeGreaterThan(0)
        expect(mergeMap(state, [{ command: 'REMOVE', keys: [...state.keys()] }]).size).toBe(0)
      }),
    )
  })
})

describe('metadata has room for so many bytes:', () => {
  const set = (...entries: [string, string][]): MapCommand => ({ command: 'SET', entries })
  const add = (key: string, ...values: string[]): MapCommand => ({ command: 'ADD', key, values })
  const long = 'x'.repeat(MAX_MAP_BYTES)
  const half = 'x'.repeat(MAX_MAP_BYTES / 2)

  test.each<[string, MapCommand[], [string, unknown][]]>([
    [
      'a value that is too long alone',
      [set(['a', '1'], ['b', long], ['c', '3'])],
      [
        ['a', '1'],
        ['c', '3'],
      ],
    ],
    ['what the key held before is no longer true', [set(['a', '1']), set(['a', long])], []],
    [
      'the second of two halves',
      [set(['a', half]), set(['b', half], ['c', '3'])],
      [
        ['a', half],
        ['c', '3'],
      ],
    ],
    [
      'a half has room again where one is removed',
      [set(['a', half]), set(['a', '1']), set(['b', half], ['c', half])],
      [
        ['a', '1'],
        ['b', half],
      ],
    ],
    ['values of a list', [add('a', '1', half, `${half}y`, '2')], [['a', ['1', half, '2']]]],
    ['a list that has no room to begin', [add('a', long), set(['b', '2'])], [['b', '2']]],
    ['a list over many steps', [add('a', half), add('a', `${half}1`), add('a', `${half}2`)], [['a', [half]]]],
  ])('%s', (_, all, expected) => {
    const state = mergeMap(EMPTY_MAP, all)
    expect(JSON.parse(textOf(state))).toEqual(expected)
    // As of outputs that each have one of the commands.
    const kept = all.flatMap((each) => decodeMap(encodeMap([each])))
    expect(textOf(mergeMap(EMPTY_MAP, kept))).toBe(textOf(state))
    expect(state.truncated).toBe(true)
    expect(servedMap(state).mapTruncated).toBe(true)
    expect(mapBytes(state)).toBeLessThanOrEqual(MAX_MAP_BYTES)
  })

  test('and that is about the bytes of its JSON', () => {
    for (const commands of [
      [set(['a', 'é"'], ['b', ''])],
      [set(['a', '1']), add('a', '2', '3'), add('b', '')],
    ]) {
      const state = mergeMap(EMPTY_MAP, commands)
      // Behind the last entry, and in an empty map, no comma stands; a list has none behind its last text.
      const lists = [...state.values()].filter((value) => typeof value !== 'string').length
      const { map } = servedMap(state)
      expect(mapBytes(state)).toBe(Buffer.byteLength(JSON.stringify(map)) - 1 + lists)
    }
  })

  test('a state that is kept and read again is what it was, and merges on in the same way', () => {
    const text = fc.oneof(fc.string(), fc.constantFrom('a', 'b', half, long, half.slice(9)))
    const words = fc.array(text, { minLength: 1, maxLength: 3 })
    const command: fc.Arbitrary<MapCommand> = fc.oneof(
      fc.record({
        command: fc.constant('SET' as const),
        entries: fc.array(fc.tuple(text, text), { maxLength: 3 }),
      }),
      fc.record({ command: fc.constant('ADD' as const), key: text, values: words }),
      fc.record({ command: fc.constant('DELETE' as const), key: text, values: words }),
      fc.record({ command: fc.constant('REMOVE' as const), keys: words }),
    )
    const commands = fc
      .array(command, { maxLength: 8 })
      .map((all) => JSON.parse(toWellFormed(JSON.stringify(all))))
    fc.assert(
      fc.property(commands, commands, (before, after) => {
        const own = [before, after].map((each) => decodeMap(encodeMap(each)))
        for (const each of [before, after]) expect(encodeMap(each).length).toBeLessThan(2 * MAX_MAP_BYTES)
        const state = mergeMap(EMPTY_MAP, own[0] ?? [])
        const kept = mergeMap(EMPTY_MAP, decodeMap(encodeMapState(state)))
        expect([textOf(kept), kept.truncated]).toEqual([textOf(state), state.truncated])
        const [whole, next] = [mergeMap(EMPTY_MAP, own.flat()), mergeMap(kept, own[1] ?? [])]
        expect([textOf(next), next.truncated]).toEqual([textOf(whole), whole.truncated])
        expect(mapBytes(whole)).toBeLessThanOrEqual(MAX_MAP_BYTES)
      }),
      { numRuns: 200 },
    )
  })

  test('and a record for as many as it is given', () => {
    const state = mergeMap(EMPTY_MAP, [set(['a', '1'], ['b', 'x'.repeat(100)], ['c', '3'])])
    expect(servedMap(state, 50)).toEqual({ map: { a: '1', c: '3' }, mapTruncated: true })
    expect(servedMap(state, 0)).toEqual({ map: {}, mapTruncated: true })
    expect(servedMap(state, 200)).not.toHaveProperty('mapTruncated')
    expect(servedMap(EMPTY_MAP, 0)).toEqual({ map: {} })
  })

  test('JSON in what has no room is not parsed', () => {
    const parse = vi.spyOn(JSON, 'parse')
    const json = JSON.stringify(Array.from({ length: 1_000_000 }, (_, at) => at))
    const steps = [set(['royalties', json]), add('subTypeData', json, json), set(['a', '1'])]
    const state = steps.reduce<MapState>(
      (merged, step) => mergeMap(merged, decodeMap(encodeMap([step]))),
      EMPTY_MAP,
    )
    expect(servedMap(state)).toEqual({ map: { a: '1' }, mapTruncated: true })
    expect(parse).not.toHaveBeenCalled()
    parse.mockRestore()
  })
})

/** Text is never half a character: it came as UTF-8. */
function toWellFormed(text: string): string {
  return Buffer.from(text, 'utf8').toString('utf8')
}

test('a hundred thousand commands take time by their number, not its square', () => {
  const values = Array.from({ length: 100_000 }, (_, i) => [`${i % 5000}`])
  const adds = values.map((each): MapCommand => ({ command: 'ADD', key: 'a', values: each }))
  const drops = values.map(
    (each): Extract<MapCommand, { command: 'DELETE' }> => ({ command: 'DELETE', key: 'a', values: each }),
  )
  const state = mergeMap(EMPTY_MAP, [...adds, ...drops.filter(({ values }) => values[0] !== '0')])
  expect(textOf(state)).toBe('[["a",["0"]]]')
  expect(mergeMap(state, drops).size).toBe(0)
})
