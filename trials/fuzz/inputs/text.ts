import fc from 'fast-check'
import type { Prey } from '../world.js'

/** Text to which some program gives a special meaning. */
const SUSPICIOUS = [
  '',
  '.',
  '..',
  '__proto__',
  'constructor',
  'toString',
  'then',
  'length',
  'null',
  'undefined',
  'NaN',
  '-0',
  '1e999',
  '0x10',
  '9007199254740993',
  '99999999999999999999',
  '%',
  '%00',
  '%zz',
  '%2F',
  '%2e%2e',
  '%C3%28',
  '%ED%A0%80',
  '%u0041',
  '%25252F',
  "' or 1=1--",
  '"; drop table names; --',
  '%%%',
  '_',
  '*',
  '$gt',
  '{{7*7}}',
  '<script>alert(1)</script>',
  '\u202e',
  'é',
  '\u{1f600}',
  '\ud800',
  '\0',
  'a'.repeat(255),
  'a'.repeat(256),
  '9'.repeat(400),
  '/'.repeat(300),
  '../'.repeat(100),
]

/** Text of strangers. */
export const hostileText: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(...SUSPICIOUS),
  fc.string({ maxLength: 30 }),
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.array(fc.constantFrom(...SUSPICIOUS), { maxLength: 4 }).map((parts) => parts.join('')),
)

/** A path, or a part of one, for a request line: characters that cannot be in one are escaped. */
export function inTarget(text: string): string {
  return text.replace(/[^\x21-\x7e]|[?#]/gu, (character) => {
    const bytes = Buffer.from(character, 'utf8')
    return [...bytes].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')
  })
}

const VOUTS = ['0', '1', '2', '3', '00', '-1', '4294967295', '4294967296', '1e3', '٣', '']
const SEQUENCES = [
  '',
  ':0',
  ':1',
  ':2',
  ':-1',
  ':-2',
  ':-3',
  ':9007199254740991',
  ':9007199254740992',
  ':',
  ':x',
  ':00',
  ':1:1',
  ':+1',
]

/** Outpoints, most of them known, some with a mistake. */
export function outpoints(prey: Prey): fc.Arbitrary<string> {
  const known = fc.constantFrom(...prey.outpoints)
  const parts = fc.tuple(
    known,
    fc.constantFrom('_', '.', ':', '', '%5F'),
    fc.oneof(fc.constantFrom(...VOUTS), hostileText),
  )
  return fc.oneof(
    { weight: 6, arbitrary: known },
    known.map((outpoint) => outpoint.toUpperCase()),
    known.map((outpoint) => outpoint.slice(0, 64)),
    parts.map(([outpoint, separator, vout]) => outpoint.slice(0, 64) + separator + vout),
    fc
      .tuple(known, fc.nat({ max: 63 }))
      .map(([outpoint, at]) => `${outpoint.slice(0, at)}0${outpoint.slice(at + 1)}`),
    hostileText,
  )
}

/** Outpoints with suffixes as in a path; half of them are valid. */
export function references(prey: Prey): fc.Arbitrary<string> {
  const right = fc.tuple(
    fc.constantFrom(...prey.outpoints),
    fc.constantFrom('', '', ':0', ':-1', ':1', ':-2'),
  )
  const strange = fc.tuple(outpoints(prey), fc.constantFrom(...SEQUENCES))
  return fc.oneof(right, strange).map((parts) => parts.join(''))
}

/** Names, some of them claimed, some invalid. */
export function names(prey: Prey): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(...prey.names) },
    fc
      .tuple(fc.constantFrom(...prey.names), fc.stringMatching(/^[a-z0-9-]{0,5}$/))
      .map((parts) => parts.join('')),
    hostileText,
  )
}

/** JSON values of any shape. */
export const hostileJson: fc.Arbitrary<string> = fc.oneof(
  { weight: 4, arbitrary: fc.json({ maxDepth: 3 }) },
  fc.json({ maxDepth: 3, noUnicodeString: false }),
  fc
    .tuple(fc.constantFrom('[', '{"a":', '[{"":', '[[],'), fc.integer({ min: 1, max: 20_000 }))
    .map(([open, times]) => open.repeat(times)),
  fc.integer({ min: 1, max: 5_000 }).map((times) => '['.repeat(times) + ']'.repeat(times)),
  fc.integer({ min: 1, max: 3_000 }).map((times) => `${'{"a":'.repeat(times)}1${'}'.repeat(times)}`),
  fc.integer({ min: 1, max: 20_000 }).map((times) => `[${'0,'.repeat(times)}0]`),
  fc.constantFrom(
    '{"__proto__":{"a":1}}',
    '{"constructor":{"prototype":{}}}',
    '1e999',
    '-0',
    '"\\ud800"',
    '{"a":1,"a":2}',
    '\ufeff{}',
    'nul',
  ),
)
