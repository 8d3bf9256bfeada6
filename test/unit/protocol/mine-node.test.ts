import fc from 'fast-check'
import { ascii, concatBytes, fromHex, toHex } from '../../../backend/src/protocol/bytes.js'
import {
  claim,
  decodeMineNode,
  encodeMineNode,
  isClaimed,
  isName,
  isNameCharacter,
  type MineNode,
  MineNodeError,
  NAME_CHARACTERS,
  UNCLAIMED,
} from '../../../backend/src/protocol/mine-node.js'
import { encodeOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { bytes, bytesOf, mutated, outpoint } from '../../support/protocol/arbitraries.js'

const nameCode = fc.constantFrom(...ascii(NAME_CHARACTERS))
const claimed = fc.array(nameCode).map((codes) => codes.reduce(claim, UNCLAIMED))
const domain = fc
  .array(fc.constantFrom(...NAME_CHARACTERS, 'a\0', '-\0\0'), { maxLength: 300, size: 'max' })
  .map((characters) => characters.join(''))
const mineNode: fc.Arbitrary<MineNode> = fc.record({
  code: bytes(),
  genesis: fc.option(outpoint, { nil: undefined }),
  claimed,
  domain,
  seed: fc.oneof(bytesOf(32), bytesOf(0)),
})

const GENESIS = { txid: 'ab'.repeat(32), vout: 1 }
const SAMPLE: MineNode = {
  code: ascii('code'),
  genesis: GENESIS,
  claimed: fromHex('000001'),
  domain: 'abc',
  seed: new Uint8Array(32).fill(7),
}

/** A script with the given state, given as hex, and a right trailer. */
function withState(...fields: string[]): Uint8Array {
  const state = fromHex(fields.join(''))
  const length = new Uint8Array(5)
  new DataView(length.buffer).setUint32(0, state.length, true)
  return concatBytes(fromHex('616a'), state, length)
}

const GENESIS_PUSH = `24${toHex(encodeOutpoint(GENESIS))}`
const SEED_PUSH = `20${'07'.repeat(32)}`

describe('the script of a node', () => {
  test('is the code, the state from its OP_RETURN, and its length', () => {
    const state = `00${GENESIS_PUSH}03000001${'03616263'}${SEED_PUSH}`
    expect(toHex(encodeMineNode(SAMPLE))).toBe(`636f6465${'6a'}${state}4f00000000`)
  })

  test('of the root as deployed has empty fields', () => {
    const root = { code: ascii('code'), claimed: UNCLAIMED, domain: '', seed: new Uint8Array() }
    expect(toHex(encodeMineNode(root))).toBe('636f6465' + '6a000001000000' + '0600000000')
    expect(decodeMineNode(encodeMineNode(root))).toEqual({ ...root, genesis: undefined })
  })

  test('reads back as it was written', () => {
    fc.assert(
      fc.property(mineNode, (node) => {
        expect(decodeMineNode(encodeMineNode(node))).toEqual(node)
      }),
    )
  })

  test('is read from the end, whatever the code looks like', () => {
    const code = concatBytes(encodeMineNode(SAMPLE), fromHex('6a4c'))
    expect(decodeMineNode(encodeMineNode({ ...SAMPLE, code }))).toEqual({ ...SAMPLE, code })
    expect(decodeMineNode(encodeMineNode({ ...SAMPLE, code: new Uint8Array() })).code).toHaveLength(0)
  })

  test('is read from a view', () => {
    const view = concatBytes(fromHex('ffffff'), encodeMineNode(SAMPLE)).subarray(3)
    expect(decodeMineNode(view)).toEqual(SAMPLE)
  })
})

describe('a script that is no node', () => {
  const good = ['00', GENESIS_PUSH, '03000001', '03616263', SEED_PUSH] as const
  const replaced = (at: number, field: string) =>
    withState(...good.map((each, i) => (i === at ? field : each)))

  test('differs from one that is', () => {
    expect(decodeMineNode(withState(...good))).toMatchObject({ domain: 'abc' })
  })

  test.each([
    ['nothing', new Uint8Array()],
    ['a lock', fromHex('76a914000000000000000000000000000000000000000088ac')],
    ['a length that is too long', concatBytes(withState(...good).subarray(0, -5), fromHex('ffffffff00'))],
    ['one that meets no OP_RETURN', concatBytes(withState(...good).subarray(0, -5), fromHex('4e00000000'))],
    ['four fields', withState(...good.slice(0, 4))],
    ['six fields', withState(...good, '00')],
    ['an opcode among the fields', replaced(2, '51')],
    ['an opcode after the fields', withState(...good, '51')],
    ['a field that breaks off', replaced(4, '21'.padEnd(66, '0'))],
    ['a first field that is not empty', replaced(0, '0100')],
    ['a genesis of 35 bytes', replaced(1, `23${'00'.repeat(35)}`)],
    ['a genesis pushed the long way', replaced(1, `4c${GENESIS_PUSH}`)],
    ['no claimed byte', replaced(2, '00')],
    ['a spare claimed byte', replaced(2, '020100')],
    ['two bytes for nothing claimed', replaced(2, '020000')],
    ['a negative claimed number', replaced(2, '0180')],
    ['a claimed number pushed the long way', replaced(2, '4c0101')],
    ['capitals in the domain', replaced(3, '03414243')],
    ['a domain that starts with a zero byte', replaced(3, '020061')],
    ['a domain pushed the longest way', replaced(3, '4d0300616263')],
    ['a seed of 31 bytes', replaced(4, `1f${'07'.repeat(31)}`)],
    ['a seed of 33 bytes', replaced(4, `21${'07'.repeat(33)}`)],
  ])('has %s', (_, script) => {
    const refusal = expect.objectContaining({ code: 'NOT_A_NODE', name: 'MineNodeError' })
    expect(() => decodeMineNode(script)).toThrow(MineNodeError)
    expect(() => decodeMineNode(script)).toThrow(refusal)
  })

  test('is the only other kind there is: what is read is written the same', () => {
    const script = mineNode.map(encodeMineNode)
    fc.assert(
      fc.property(fc.oneof(bytes(), mutated(script)), (any) => {
        let node: MineNode
        try {
          node = decodeMineNode(any)
        } catch (error) {
          expect(error).toBeInstanceOf(MineNodeError)
          return
        }
        expect(toHex(encodeMineNode(node))).toBe(toHex(any))
      }),
      { numRuns: 300 },
    )
  })
})

describe('claimed characters', () => {
  test('are bits of a little-endian number', () => {
    const one = '000000000000000000000000000008'
    expect(toHex(claim(UNCLAIMED, 's'.charCodeAt(0)))).toBe(one)
    expect(toHex(claim(fromHex(one), 'a'.charCodeAt(0)))).toBe('000000000000000000000000020008')
  })

  test.each(['7', 'g', 'o', 'w'])('%s takes a further byte, as its bit would be the sign', (character) => {
    const code = character.charCodeAt(0)
    const bits = claim(UNCLAIMED, code)
    expect(bits).toHaveLength((code >> 3) + 2)
    expect(toHex(bits.slice(-2))).toBe('8000')
    expect(isClaimed(bits, code)).toBe(true)
  })

  test('lose the further byte where a higher one comes', () => {
    const both = claim(claim(UNCLAIMED, 'w'.charCodeAt(0)), 'x'.charCodeAt(0))
    expect(toHex(both.slice(-2))).toBe('8001')
  })

  test('are exactly those that were claimed, in any order', () => {
    fc.assert(
      fc.property(fc.array(nameCode), fc.func(fc.integer()), (codes, shuffle) => {
        const bits = codes.reduce(claim, UNCLAIMED)
        const reordered = [...codes].sort((a, b) => shuffle(a) - shuffle(b)).reduce(claim, UNCLAIMED)
        expect(toHex(reordered)).toBe(toHex(bits))
        for (let code = 0; code < 256; code++) expect(isClaimed(bits, code)).toBe(codes.includes(code))
        const value = codes.reduce((number, code) => number | (1n << BigInt(code)), 0n)
        expect(BigInt(`0x${toHex(bits.slice().reverse())}`)).toBe(value)
      }),
    )
  })
})

describe('names', () => {
  test('are made of 37 characters', () => {
    const allowed = Array.from({ length: 256 }, (_, code) => code).filter(isNameCharacter)
    expect(String.fromCharCode(...allowed)).toBe('-0123456789abcdefghijklmnopqrstuvwxyz')
    expect(new Set(NAME_CHARACTERS).size).toBe(37)
  })

  test('are of 1 to 255 of them', () => {
    for (const text of ['a', '-', '0', 'a-b-9', 'x'.repeat(255)]) expect(isName(text), text).toBe(true)
    for (const text of ['', 'A', 'a.b', 'a b', 'ä', 'a\u200b', 'а', 'a\n', '\na', '１', 'x'.repeat(256)])
      expect(isName(text), text).toBe(false)
  })
})
