import { Script } from '@bsv/sdk'
import fc from 'fast-check'
import { fromHex, joinBytes, toHex } from '../../../backend/src/protocol/bytes.js'
import {
  encodeMinimalPush,
  encodePush,
  readPushes,
  ScriptWalk,
} from '../../../backend/src/protocol/script-walk.js'
import { bytes } from '../../support/protocol/arbitraries.js'

interface Step {
  op: number
  start: number
  end: number
  data: string | undefined
}

function walkAll(script: Uint8Array, at?: number): Step[] {
  const steps: Step[] = []
  const walk = new ScriptWalk(script, at)
  while (walk.next()) {
    const { op, start, end, data } = walk
    steps.push({ op, start, end, data: data && toHex(data) })
  }
  expect(walk.next()).toBe(false)
  return steps
}

describe('a walk', () => {
  test('stops at every opcode and push', () => {
    expect(walkAll(fromHex('0051ac02aabb4c01cc4d0100dd4e01000000ee4f60'))).toEqual([
      { op: 0x00, start: 0, end: 1, data: '' },
      { op: 0x51, start: 1, end: 2, data: undefined },
      { op: 0xac, start: 2, end: 3, data: undefined },
      { op: 0x02, start: 3, end: 6, data: 'aabb' },
      { op: 0x4c, start: 6, end: 9, data: 'cc' },
      { op: 0x4d, start: 9, end: 13, data: 'dd' },
      { op: 0x4e, start: 13, end: 19, data: 'ee' },
      { op: 0x4f, start: 19, end: 20, data: undefined },
      { op: 0x60, start: 20, end: 21, data: undefined },
    ])
  })

  test('may start anywhere', () => {
    expect(walkAll(fromHex('05aaaa01bb'), 3)).toEqual([{ op: 1, start: 3, end: 5, data: 'bb' }])
    expect(walkAll(fromHex('51'), 1)).toEqual([])
  })

  test.each(['51', '5102aa', '514c', '514c02aa', '514d', '514d01', '514d0200aa', '514effffffffaa'])(
    'of %s ends where a push breaks off',
    (hex) => {
      expect(walkAll(fromHex(hex)).map(({ op }) => op)).toEqual([0x51])
    },
  )

  test('finds what the SDK finds, where no OP_RETURN makes that fold the rest', () => {
    const script = fc
      .array(
        fc.oneof(
          bytes(300).map(encodePush),
          fc.integer({ min: 0x4f, max: 0xff }).map((op) => Uint8Array.of(op)),
        ),
      )
      .map((parts) => joinBytes(parts.filter((part) => part[0] !== 0x6a)))
    fc.assert(
      fc.property(script, (any) => {
        const chunks = Script.fromHex(toHex(any)).chunks
        expect(walkAll(any).map(({ op, data }) => [op, data ?? ''])).toEqual(
          chunks.map(({ op, data }) => [op, toHex(Uint8Array.from(data ?? []))]),
        )
      }),
    )
  })

  test('covers any bytes without a gap', () => {
    fc.assert(
      fc.property(bytes(), (script) => {
        let at = 0
        for (const { start, end } of walkAll(script)) {
          expect(start).toBe(at)
          expect(end).toBeGreaterThan(start)
          at = end
        }
        expect(at).toBeLessThanOrEqual(script.length)
      }),
    )
  })
})

test.each([
  ['00', ''],
  ['4f', '81'],
  ['51', '01'],
  ['60', '10'],
  ['0105', '05'],
  ['02aabb', 'aabb'],
  ['50', undefined],
  ['61', undefined],
])('%s pushes %s', (hex, pushed) => {
  const walk = new ScriptWalk(fromHex(hex))
  expect(walk.next()).toBe(true)
  expect(walk.pushed && toHex(walk.pushed)).toBe(pushed)
  expect(walk.pushedLength).toBe(pushed === undefined ? undefined : pushed.length / 2)
  const target = new Uint8Array(5)
  walk.copyPushed(target, 1)
  expect(toHex(target)).toBe(`00${(pushed ?? '').padEnd(8, '0')}`)
})

describe('pushes in a row', () => {
  test('are read up to the first opcode that is none', () => {
    expect(readPushes(fromHex('51000102ac0103'), { limit: 9 }).map(toHex)).toEqual(['01', '', '02'])
  })

  test('are read from an offset, up to a limit', () => {
    expect(readPushes(fromHex('51525354'), { at: 1, limit: 2 }).map(toHex)).toEqual(['02', '03'])
    expect(readPushes(fromHex('51'), { limit: 0 })).toEqual([])
  })
})

describe('a written push', () => {
  test.each([
    [0, '00'],
    [1, '01'],
    [75, '4b'],
    [76, '4c4c'],
    [255, '4cff'],
    [256, '4d0001'],
    [65535, '4dffff'],
    [65536, '4e00000100'],
  ])('of %i bytes starts with %s', (length, prefix) => {
    const push = encodePush(new Uint8Array(length))
    expect(push).toHaveLength(prefix.length / 2 + length)
    expect(toHex(push.subarray(0, prefix.length / 2))).toBe(prefix)
    expect(readPushes(push, { limit: 9 }).map((data) => data.length)).toEqual([length])
  })

  test('never is a number opcode, unless it is to be minimal', () => {
    expect(toHex(encodePush(Uint8Array.of(1)))).toBe('0101')
    const minimal = [[], [0], [1], [16], [17], [0x81], [1, 1]].map((data) =>
      encodeMinimalPush(Uint8Array.from(data)),
    )
    expect(minimal.map(toHex)).toEqual(['00', '0100', '51', '60', '0111', '4f', '020101'])
  })

  test('pushes the same bytes', () => {
    fc.assert(
      fc.property(fc.oneof(bytes(3), bytes(600)), (data) => {
        for (const encode of [encodePush, encodeMinimalPush]) {
          expect(readPushes(encode(data), { limit: 9 })).toEqual([data])
        }
      }),
    )
  })
})
