import fc from 'fast-check'
import { joinBytes, utf8 } from '../../../backend/src/protocol/bytes.js'
import { DirectoryError, directoryEntries } from '../../../backend/src/protocol/directory.js'
import { bytes, mutated } from '../../support/protocol/arbitraries.js'

const readDirectory = (body: Uint8Array) => new Map(directoryEntries(body, 'ord-fs/json'))

const refusal = (message: string) => expect.objectContaining({ code: 'BAD_DIRECTORY', message })

test.each([
  [
    'the names of what every object has',
    '{"__proto__":"_0","constructor":"_1"}',
    '__proto__ _0 constructor _1',
  ],
  ['a name twice, of which the last counts', '{"a":"_0","b":"_1","a":"_2"}', 'a _2 b _1'],
  ['__proto__ twice', '{"__proto__":"_0","__proto__":"_1"}', '__proto__ _1'],
])('a directory with %s is read', (_, text, entries) => {
  expect([...readDirectory(utf8(text))].flat().join(' ')).toBe(entries)
})

test.each([
  ['', 'it is not JSON'],
  ['{', 'it is not JSON'],
  ['{"a":"_0"} x', 'it is not JSON'],
  ['{"a":"_0",}', 'it is not JSON'],
  ['\ufeff{"a":"_0"}', 'it is not JSON'],
  ['null', 'it is not a JSON object'],
  ['["_0"]', 'it is not a JSON object'],
  ['{"a":1}', 'a value in it is not a string'],
  ['{"a":null}', 'a value in it is not a string'],
  ['{"a":"_0","b":{"c":"_1"}}', 'a value in it is not a string'],
  ['{"__proto__":{"a":"_0"}}', 'a value in it is not a string'],
  ['{"a/b":"_0"}', 'a name in it has a slash'],
  ['{"a\\u002fb":"_0"}', 'a name in it has a slash'],
])('%j is refused: %s', (text, message) => {
  expect(() => readDirectory(utf8(text))).toThrow(refusal(message))
})

test.each([
  ['a byte that UTF-8 has not', Uint8Array.of(0xff)],
  ['a surrogate as bytes', Uint8Array.of(0xed, 0xa0, 0x80)],
  ['a slash in two bytes', Uint8Array.of(0xc0, 0xaf)],
])('%s in a name is refused', (_, wrong) => {
  const body = joinBytes([utf8('{"'), wrong, utf8('":"_0"}')])
  expect(() => readDirectory(body)).toThrow(refusal('it is not UTF-8'))
})

test('brackets however deep are refused as what they are', () => {
  const depth = 400_000
  const body = utf8(`{"a":${'['.repeat(depth)}${']'.repeat(depth)}}`)
  expect(() => readDirectory(body)).toThrow(refusal('a value in it is not a string'))
})

const name = fc.oneof(
  fc.string({ unit: 'binary' }).map((any) => any.replaceAll('/', '')),
  fc.constantFrom('.', '..', 'index.html', '__proto__', 'constructor', 'toString', '0', '00', ''),
)
const entries = fc.uniqueArray(fc.tuple(name, fc.string({ unit: 'binary' })), { selector: ([key]) => key })

/** Written by hand: as an object, the entries would lose their order, and `__proto__` its entry. */
function jsonOf(all: [string, string][]): Uint8Array {
  return utf8(`{${all.map(([key, pointer]) => `${JSON.stringify(key)}:${JSON.stringify(pointer)}`).join()}}`)
}

test('what JSON was written of is what is read, from a view too', () => {
  fc.assert(
    fc.property(entries, (all) => {
      const view = Uint8Array.of(255, ...jsonOf(all), 255).subarray(1, -1)
      expect(readDirectory(view)).toEqual(new Map(all))
    }),
  )
})

test('any bytes are a map of single names, or are refused', () => {
  fc.assert(
    fc.property(fc.oneof(bytes(), mutated(entries.map(jsonOf))), (any) => {
      try {
        for (const [key, pointer] of readDirectory(any)) {
          expect(key).not.toContain('/')
          expect(typeof pointer).toBe('string')
        }
      } catch (error) {
        expect(error).toBeInstanceOf(DirectoryError)
      }
    }),
  )
})
