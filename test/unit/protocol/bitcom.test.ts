import fc from 'fast-check'
import { readB, readBitcom, readMapScript } from '../../../backend/src/protocol/bitcom.js'
import { concatBytes, fromHex, readUtf8, utf8 } from '../../../backend/src/protocol/bytes.js'
import { encodePush } from '../../../backend/src/protocol/script-walk.js'
import { bytes } from '../../support/protocol/arbitraries.js'
import { bitcomTail } from '../../support/protocol/fake-chain.js'

const texts = (script: Uint8Array, at = 1) =>
  readBitcom(script, at).map(({ marker, pushes }) => [marker, ...pushes.map(readUtf8)])
const words = (...text: string[]): Uint8Array[] => text.map(utf8)

describe('the protocols of a tail', () => {
  test('are split at each pipe, and start with their marker', () => {
    expect(texts(bitcomTail(['a', 'b', 'c'], ['d'], ['e', '']))).toEqual([['a', 'b', 'c'], ['d'], ['e', '']])
  })

  test('are none where nothing stands between pipes', () => {
    expect(texts(bitcomTail([], ['a'], [], ['b'], []))).toEqual([['a'], ['b']])
    expect(texts(fromHex('6a'))).toEqual([])
  })

  test('are split only at a push of exactly a pipe', () => {
    expect(texts(bitcomTail(['a', '||', ' |', '|b']))).toEqual([['a', '||', ' |', '|b']])
    expect(texts(concatBytes(bitcomTail(['a']), fromHex('4c017c'), fromHex('0162')))).toEqual([['a'], ['b']])
  })

  test('end where a push breaks off, and at code', () => {
    const tail = bitcomTail(['a', 'b'])
    expect(texts(concatBytes(tail, fromHex('0563')))).toEqual([['a', 'b']])
    expect(texts(concatBytes(tail, fromHex('ac'), encodePush(utf8('c'))))).toEqual([['a', 'b']])
  })

  test('count number opcodes as the byte they push', () => {
    expect(texts(concatBytes(bitcomTail(['a']), fromHex('514f')))).toEqual([['a', '\x01', '\ufffd']])
  })

  test('are read from the offset given', () => {
    expect(texts(concatBytes(fromHex('0502'), bitcomTail(['a'])), 3)).toEqual([['a']])
  })

  test('have an end, however many pushes there are', () => {
    const [protocol, ...more] = readBitcom(new Uint8Array(5_000_000), 0)
    expect(protocol?.pushes).toHaveLength(9_999)
    expect(more).toEqual([])
  })

  test('are read from any bytes without an error', () => {
    fc.assert(fc.property(bytes(), fc.nat({ max: 310 }), (script, at) => void readBitcom(script, at)))
  })
})

describe('B', () => {
  test.each([
    [['data', 'text/plain', 'utf-8', 'a.txt'], { data: utf8('data'), mediaType: 'text/plain' }],
    [['data'], { data: utf8('data'), mediaType: undefined }],
    [['', '', '', ''], { data: new Uint8Array(), mediaType: undefined }],
    [[], undefined],
  ])('of %j is data and media type', (pushes, read) => {
    expect(readB(words(...pushes))).toEqual(read)
  })

  test('drops a media type that is too long or no text', () => {
    expect(readB([...words('data', 'x'.repeat(256))])?.mediaType).toBeUndefined()
    expect(readB([utf8('data'), Uint8Array.of(0xff)])?.mediaType).toBeUndefined()
  })
})

describe('MAP', () => {
  const set = (...entries: string[]) => ({ command: 'SET', entries: entries.map((each) => each.split('=')) })
  test.each([
    [['SET', 'a', '1', 'b', '2'], set('a=1', 'b=2')],
    [['SET', 'a', '1', 'b'], set('a=1')],
    [['SET', 'a', '1', 'a', '2'], set('a=1', 'a=2')],
    [['SET', '__proto__', 'x'], set('__proto__=x')],
    [['SET', '', ''], set('=')],
    [['REMOVE', 'a', 'b'], { command: 'REMOVE', keys: ['a', 'b'] }],
    [['ADD', 'list', 'x', 'y'], { command: 'ADD', key: 'list', values: ['x', 'y'] }],
    [['DELETE', 'list', 'x'], { command: 'DELETE', key: 'list', values: ['x'] }],
  ])('reads %j', (pushes, command) => {
    expect(readMapScript(words(...pushes))).toEqual([command])
  })

  test('changes nothing with what is no command', () => {
    expect(readMapScript([])).toEqual([])
    const none = ['SET', 'SET a', 'REMOVE', 'ADD', 'ADD list', 'DELETE list', 'set a 1', 'SELECT x SET a 1']
    for (const pushes of [...none, 'CLEAR a'])
      expect(readMapScript(words(...pushes.split(' '))), pushes).toEqual([])
  })

  test.each([
    ['SET a 1 ::: ADD b x y', 'SET a 1', 'ADD b x y'],
    ['SET a 1 :::', 'SET a 1'],
    ['::: SET a 1 ::: ::: REMOVE b :::', 'SET a 1', 'REMOVE b'],
    ['ADD a x ::: ADD b y :::', 'ADD a x', 'ADD b y'],
    ['FLY a 1 ::: SET b 2', 'SET b 2'],
    ['SET a ::: SET b 2', 'SET b 2'],
    ['SET a :::: b', 'SET a ::::'],
    ['DELETE a x ::: REMOVE a', 'DELETE a x', 'REMOVE a'],
  ])('of several commands: %s', (text, ...each) => {
    const commands = each.flatMap((command) => readMapScript(words(...command.split(' '))))
    expect(commands).toHaveLength(each.length)
    expect(readMapScript(words(...text.split(' ')))).toEqual(commands)
  })

  test('replaces what is no UTF-8', () => {
    expect(readMapScript([utf8('SET'), Uint8Array.of(0x61, 0xff), Uint8Array.of(0xc3)])).toEqual([
      { command: 'SET', entries: [['a\ufffd', '\ufffd']] },
    ])
  })

  test('takes any pushes without an error', () => {
    const command = fc.constantFrom('SET', 'REMOVE', 'ADD', 'DELETE', 'X').map(utf8)
    const pushes = fc.tuple(command, fc.array(bytes(20))).map(([first, rest]) => [first, ...rest])
    fc.assert(fc.property(pushes, (any) => void readMapScript(any)))
  })
})
