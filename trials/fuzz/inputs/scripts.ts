import { OP as CODES } from '@bsv/sdk'
import fc from 'fast-check'
import { encodeBinaryDirectory } from '../../../backend/src/protocol/binary-directory.js'
import { MAP_MARKER } from '../../../backend/src/protocol/bitcom.js'
import { concatBytes, fromHex, joinBytes, utf8 } from '../../../backend/src/protocol/bytes.js'
import { parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { encodePatch, PATCH_TYPE } from '../../../backend/src/protocol/patch.js'
import { encodePush, OP } from '../../../backend/src/protocol/script-walk.js'
import { encodeDelta } from '../../../backend/src/protocol/vcdiff.js'
import { bytes, mutated, outpoint } from '../../../test/support/protocol/arbitraries.js'
import { delta } from '../../../test/support/protocol/deltas.js'
import { bitcomTail, inscriptionScript, OPEN_LOCK, p2pkh } from '../../../test/support/protocol/fake-chain.js'
import type { Prey } from '../world.js'
import { HUGE_COUNTS } from './bytes.js'
import { hostileJson, hostileText, names } from './text.js'

/** BRC-65 and the prefix of B. */
const B_MARKER = '19HxigV4QyBv3tHpQVcUEQyq1pzZVdoAut'

const push = (data: Uint8Array | string): Uint8Array =>
  encodePush(typeof data === 'string' ? utf8(data) : data)

const contentTypes = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      'text/plain',
      'text/html',
      'image/svg+xml',
      'application/json',
      'gw/stream',
      'ordfs/stream',
      'audio/x;stream=gw',
      'ordfs/dir',
    ),
  },
  fc.constantFrom(
    '',
    ' ',
    '/',
    'text/html\r\nX-Evil: 1',
    'text/html; charset=utf-16le',
    'TEXT/HTML;;;;a=b',
    'text/plain, text/html',
    'multipart/byteranges; boundary=a',
    `text/${'h'.repeat(249)}`,
    `a/b;${'c=d;'.repeat(60)}`,
    'text/html\0',
    'text/ht\u202eml',
  ),
  hostileText,
)

/** Directories: maps that lead somewhere, nowhere and back, and other text. */
function directoryBodies(prey: Prey): fc.Arbitrary<string> {
  const pointer = fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom('_0', '_1', '_2', '_3', '_4294967295', 'ord://_0', '_00', '') },
    fc.constantFrom(...prey.outpoints),
    hostileText,
  )
  const key = fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom('.', 'index.html', 'a', 'b', 'sub', '') },
    hostileText,
  )
  return fc.oneof(
    {
      weight: 5,
      arbitrary: fc
        .array(fc.tuple(key, pointer), { maxLength: 6 })
        .map((all) => `{${all.map(([name, to]) => `${JSON.stringify(name)}:${JSON.stringify(to)}`).join()}}`),
    },
    hostileJson,
  )
}

/** The same as binary directories, valid or with a mistake, with links to paths and to themselves. */
function binaryDirectories(prey: Prey): fc.Arbitrary<Uint8Array> {
  const entry = fc.record({
    name: fc.oneof(
      fc.constantFrom('.', 'index.html', 'a', 'b', 'sub'),
      hostileText.map((text) => text.slice(0, 80) || 'a'),
    ),
    flags: fc.nat(7),
    target: fc.oneof(
      { weight: 3, arbitrary: fc.nat(3) },
      fc.nat(255),
      fc.constantFrom(...prey.outpoints).map(parseOutpoint),
    ),
  })
  const whole = fc.array(entry, { maxLength: 6 }).map(encodeBinaryDirectory)
  return fc.oneof({ weight: 3, arbitrary: whole }, mutated(whole), bytes(60))
}

/** MAP of an ordinal. */
const maps: fc.Arbitrary<Uint8Array> = fc
  .tuple(
    fc.constantFrom(
      'SET',
      'SET',
      'ADD',
      'DEL',
      'REMOVE',
      'DELETE',
      'SELECT',
      'CLEAR',
      'MSGPACK',
      'JSON',
      'set',
      '',
    ),
    fc.array(hostileText, { maxLength: 8 }),
    fc.boolean(),
  )
  .map(([command, words, isTwice]) => {
    const one = [MAP_MARKER, command, ...words]
    return isTwice ? bitcomTail(one, one) : bitcomTail(one)
  })

const bProtocol = fc
  .tuple(bytes(40), contentTypes, fc.array(hostileText, { maxLength: 3 }))
  .map(([body, type, more]) => bitcomTail([B_MARKER, body, type, ...more]))

/** Envelopes with any fields, perhaps repeated, and perhaps without an end. */
const envelopes: fc.Arbitrary<Uint8Array> = fc
  .tuple(
    fc.array(
      fc.tuple(fc.oneof(fc.constantFrom(0, 1, 2, 3, 5, 7, 9, 11, 255), fc.nat({ max: 255 })), bytes(40)),
      { maxLength: 8 },
    ),
    fc.integer({ min: 1, max: 300 }),
    bytes(60),
    fc.constantFrom<number[]>([OP.ENDIF], [], [OP.ENDIF, OP.ENDIF], [OP.RETURN], [OP.IF]),
  )
  .map(([fields, times, body, end]) => {
    const all = fields.flatMap(([tag, value]) => [push(Uint8Array.of(tag)), push(value)])
    const chunks = Array.from({ length: times % 7 === 0 ? times : 1 }, () => push(body))
    return joinBytes([
      Uint8Array.of(OP.FALSE, OP.IF),
      push('ord'),
      ...all,
      Uint8Array.of(0),
      ...chunks,
      Uint8Array.from(end),
    ])
  })

/** Pushes that claim to be longer than the data. */
const brokenPushes = fc
  .tuple(fc.constantFrom(0x4b, 0x4c, 0x4d, 0x4e), fc.constantFrom(...HUGE_COUNTS), bytes(8))
  .map(([op, length, data]) => concatBytes(Uint8Array.of(op), length, data))

const NESTED = [OP.IF, 0x64, 0x67, OP.ENDIF, OP.RETURN, 0x00, 0x51, 0x61]
const code = fc.oneof(
  fc.array(fc.constantFrom(...NESTED), { maxLength: 30 }).map((ops) => Uint8Array.from(ops)),
  fc
    .tuple(fc.constantFrom(...NESTED, 0x76, 0x6a), fc.integer({ min: 1, max: 20_000 }))
    .map(([op, times]) => new Uint8Array(times).fill(op)),
  bytes(60),
)

/** Deltas for any source of at least a few bytes, before they are changed. */
const DELTAS = [
  encodeDelta(new Uint8Array(), utf8('{"index.html":"_1"}')),
  delta({ segment: '01 04 00', makes: 4, codes: '14', addresses: '00' }),
  delta({ segment: '01 04 00', makes: 1000, data: '7b7d', codes: '03 13 8766', addresses: '04' }),
  delta(
    { makes: 3, data: '616263', codes: '04' },
    { segment: '02 03 00', makes: 6, codes: '1303 1303', addresses: '00 03' },
  ),
]

/** Locking scripts in which the service finds something. */
export function lockingScripts(prey: Prey): fc.Arbitrary<Uint8Array> {
  const inscription = fc
    .record(
      {
        contentType: contentTypes,
        body: fc.oneof(
          bytes(200),
          hostileText.map(utf8),
          fc.constantFrom('a', 'sub/a', '../a', '.').map(utf8),
        ),
        parent: outpoint,
        suffix: fc.oneof(maps, bProtocol, code),
      },
      { requiredKeys: [] },
    )
    .map((parts) =>
      inscriptionScript({ ...parts, contentType: parts.contentType?.slice(0, 255) ?? 'text/plain' }),
    )
  const bytesOfDirectory = binaryDirectories(prey).map((body) =>
    inscriptionScript({ contentType: 'ordfs/dir', body }),
  )
  const directory = fc
    .tuple(fc.constantFrom('gw-fs/json', 'ord-fs/json', 'GW-FS/JSON; a=b'), directoryBodies(prey))
    .map(([contentType, body]) => inscriptionScript({ contentType, body: utf8(body) }))
  const patch = fc
    .tuple(
      fc.constantFrom(...prey.directories, ...prey.streams).map(parseOutpoint),
      mutated(fc.constantFrom(...DELTAS)),
      fc.nat({ max: 3 }),
    )
    .map(([base, bytes, cut]) => {
      const record = encodePatch({ base, delta: bytes })
      const body = cut === 0 ? record.subarray(0, bytes.length) : record
      return inscriptionScript({ contentType: PATCH_TYPE, body })
    })
  const name = names(prey).map((text) =>
    inscriptionScript({ contentType: 'application/name-claim', body: utf8(text) }),
  )
  const lock = fc.oneof(
    fc.nat({ max: 5 }).map(p2pkh),
    fc.constant(OPEN_LOCK),
    fc.constant(new Uint8Array()),
    code,
  )
  return fc.oneof(
    { weight: 4, arbitrary: inscription },
    { weight: 4, arbitrary: directory },
    { weight: 3, arbitrary: bytesOfDirectory },
    { weight: 3, arbitrary: patch },
    { weight: 2, arbitrary: fc.tuple(lock, maps).map((parts) => concatBytes(...parts)) },
    fc.tuple(lock, bProtocol).map((parts) => concatBytes(...parts)),
    {
      weight: 2,
      arbitrary: fc.tuple(lock, envelopes, fc.oneof(maps, code)).map((parts) => concatBytes(...parts)),
    },
    name,
    fc.tuple(lock, brokenPushes).map((parts) => concatBytes(...parts)),
    lock,
  )
}

/** Numbers that opcodes take for sizes and amounts. */
const NUMBERS = [
  '',
  '01',
  '02',
  '08',
  '7f',
  'ff00',
  'ffff00',
  '00000008',
  'ffffff07',
  '00000040',
  'ffffff7f',
  'ffffffff',
  'ffffffffff7f',
]
const numbers = fc.constantFrom(...NUMBERS).map(fromHex)
/** Opcodes that make much of little, or look far. */
const SIZED = [
  CODES.OP_NUM2BIN,
  CODES.OP_LSHIFT,
  CODES.OP_RSHIFT,
  CODES.OP_PICK,
  CODES.OP_ROLL,
  CODES.OP_SPLIT,
]
const OPCODES = Object.entries(CODES)
  .filter(([name, op]) => name.startsWith('OP_') && typeof op === 'number' && op > 0x60 && op < 0xba)
  .map(([, op]) => op as number)

/** Scripts to run: all opcodes, repeated, with arguments that make them do much. */
export const programs: fc.Arbitrary<Uint8Array> = fc
  .tuple(
    fc.array(
      fc.oneof(
        { weight: 3, arbitrary: fc.constantFrom(...OPCODES).map((op) => Uint8Array.of(op)) },
        { weight: 2, arbitrary: numbers.map(push) },
        bytes(80).map(push),
        fc
          .tuple(numbers, fc.constantFrom(...SIZED))
          .map(([size, op]) => concatBytes(push(Uint8Array.of(1)), push(size), Uint8Array.of(op))),
        // Doubles the length each time.
        fc.constant(Uint8Array.of(CODES.OP_DUP, CODES.OP_CAT)),
      ),
      { minLength: 1, maxLength: 12 },
    ),
    fc.oneof(
      { weight: 4, arbitrary: fc.constant(1) },
      fc.integer({ min: 2, max: 40 }),
      fc.integer({ min: 100, max: 2000 }),
    ),
  )
  .map(([parts, times]) =>
    joinBytes(Array.from({ length: times }, () => joinBytes(parts))).subarray(0, 20_000),
  )
