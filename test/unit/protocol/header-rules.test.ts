import {
  bitsOf,
  compactOf,
  encodeHeader,
  rootOf,
  targetOf,
  timeOf,
  workOf,
} from '../../../backend/src/protocol/block-header.js'
import { joinBytes, reversed, toHex } from '../../../backend/src/protocol/bytes.js'
import { CONTEXT, HeaderRules, nextBits, totalWork } from '../../../backend/src/protocol/header-rules.js'
import { hash256 } from '../../../backend/src/protocol/transaction.js'
import { HeaderChain } from '../../support/server/header-chain.js'

// The rules of consensus for headers. The headers of mainnet from 900,000 to 916,817 keep all of them, as far as they are
// in a public file; here are made-up numbers, checked against the same rules written down a second time.

const host = { now: Date.now, hash: hash256 }
const shownHash = (header: Uint8Array): string => toHex(reversed(hash256(header)))

/** The genesis block (https://github.com/bitcoin-sv/bitcoin-sv/blob/master/src/chainparams.cpp). */
const GENESIS = {
  version: 1,
  previous: '00'.repeat(32),
  root: '4a5e1e4baab89f3a32518a88c31bc87f618f76673e2cc77ab2127b7afdeda33b',
  time: 1_231_006_505,
  bits: 0x1d00ffff,
  nonce: 2_083_236_893,
}

test('a header is written and read as the chain has it', () => {
  const header = encodeHeader(GENESIS)
  expect(shownHash(header)).toBe('000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f')
  expect({ root: rootOf(header), time: timeOf(header), bits: bitsOf(header) }).toEqual({
    root: GENESIS.root,
    time: GENESIS.time,
    bits: GENESIS.bits,
  })
  expect(totalWork(header)).toBe(0x100010001n)
})

test.each([
  [0x1d00ffff, 0xffffn << 208n],
  [0x207fffff, 0x7fffffn << 232n],
  [0x03123456, 0x123456n],
  [0x02123456, 0x1234n],
  [0x01120000, 0x12n],
  [0x1800b31d, 0xb31dn << 168n],
])('the bits %s are a target', (bits, target) => {
  expect(targetOf(bits)).toBe(target)
  expect(targetOf(compactOf(target))).toBe(target)
  expect(workOf(bits)).toBe(2n ** 256n / (target + 1n))
})

test.each([0x00000000, 0x1d000000, 0x1d80ffff, 0x01fedcba, 0x22ffffff >>> 0, 0xff7fffff])(
  'the bits %s are none',
  (bits) => {
    expect(targetOf(bits)).toBeUndefined()
    expect(() => workOf(bits)).toThrow(RangeError)
  },
)

/** What the next block is asked for, after blocks of one target, some seconds apart each. */
function asked(bits: number, apart: number, rule: 'main' | 'test' | 'fixed' = 'main', late = 600): number {
  const known = Array.from({ length: CONTEXT }, (_, at) => ({
    time: 1_600_000_000 + at * apart,
    work: BigInt(at + 1) * workOf(bits),
  }))
  return nextBits({ known, rule, bits, time: (known.at(-1)?.time ?? 0) + late })
}

const HARD = 0x1800b31d

describe('the difficulty adjustment', () => {
  test.each([
    ['stays where blocks come every ten minutes', 600, 1, 1],
    ['halves the target where they come every five', 300, 1, 2],
    ['doubles it where they take twenty', 1200, 2, 1],
    ['halves it at most', 1, 1, 2],
    ['doubles it at most', 60_000, 2, 1],
  ])('%s', (_, apart, times, by) => {
    const target = targetOf(HARD) ?? 0n
    const expected = (target * BigInt(times)) / BigInt(by)
    const found = targetOf(asked(HARD, apart)) ?? 0n
    // Compact targets have two to three digits.
    const digits = expected >> 16n
    expect(found - expected <= digits && expected - found <= digits).toBe(true)
  })

  test('asks for no easier target than the easiest', () => {
    expect(asked(0x1d00ffff, 1200)).toBe(0x1d00ffff)
    expect(asked(0x1d00ffff, 600)).toBe(0x1d00ffff)
  })

  test('lets a block of the test network that is late be the easiest, and no other', () => {
    expect(asked(HARD, 600, 'test', 1201)).toBe(0x1d00ffff)
    expect(asked(HARD, 600, 'test', 1200)).toBe(asked(HARD, 600))
    expect(asked(HARD, 600, 'main', 1201)).toBe(asked(HARD, 600))
  })

  test('is none on a regression test network', () => {
    expect(asked(0x207fffff, 1, 'fixed')).toBe(0x207fffff)
  })

  test('one header out of order at either end changes nothing', () => {
    const known = Array.from({ length: CONTEXT }, (_, at) => ({
      time: 1_600_000_000 + at * 600,
      work: BigInt(at + 1) * workOf(HARD),
    }))
    const query = { known, rule: 'main', bits: HARD, time: 0 } as const
    const usual = nextBits(query)
    const last = known.at(-1)
    const first = known[2]
    if (last === undefined || first === undefined) throw new Error('there are headers')
    // The median of three is the one in the middle, before and after.
    last.time += 500
    first.time += 500
    expect(nextBits(query)).toBe(usual)
  })

  test('is not guessed from too few headers', () => {
    const chain = new HeaderChain()
    chain.grow(20)
    const before = joinBytes([...chain.branch.blocks()].map(({ header }) => header.bytes).reverse())
    expect(() => new HeaderRules({ before, height: 800_020, rule: 'main', ...host })).toThrow(/not enough/)
  })
})

test('a header is refused for a time that is not after the median of the eleven before it', async () => {
  const chain = new HeaderChain()
  chain.grow(30)
  const headers = [...chain.branch.blocks()].map(({ header }) => header).reverse()
  const before = joinBytes(headers.slice(0, 20).map(({ bytes }) => bytes))
  const previous = headers[19]
  if (previous === undefined) throw new Error('there are headers')
  const median = headers[14]?.time ?? 0
  const mined = (time: number): Uint8Array => {
    for (let nonce = 0; ; nonce++) {
      const fields = { version: 1, previous: previous.hash, root: 'ab'.repeat(32), time, nonce }
      const header = encodeHeader({ ...fields, bits: previous.bits })
      if (BigInt(`0x${shownHash(header)}`) <= (targetOf(previous.bits) ?? 0n)) return header
    }
  }
  const verify = async (header: Uint8Array): Promise<number> => {
    const rules = new HeaderRules({ before, height: previous.height, rule: 'fixed', ...host })
    rules.next(header)
    return rules.height
  }
  await expect(verify(mined(median))).rejects.toMatchObject({ code: 'INVALID_HEADERS' })
  expect(await verify(mined(median + 1))).toBe(previous.height + 1)
  const easy = mined(median + 1)
  const changed = Buffer.from(easy)
  for (let nonce = 0; BigInt(`0x${shownHash(changed)}`) <= (targetOf(previous.bits) ?? 0n); nonce++)
    changed.writeUInt32LE(nonce, 76)
  expect(toHex(changed)).not.toBe(toHex(easy))
  await expect(verify(changed)).rejects.toThrow('has no proof of work')
})
