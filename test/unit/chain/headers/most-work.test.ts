import { createHash } from 'node:crypto'
import { TimeSlice } from '../../../../backend/src/graph/yield-to-event-loop.js'
import { encodeHeader, workOf } from '../../../../backend/src/protocol/block-header.js'
import { joinBytes, reversed, toHex } from '../../../../backend/src/protocol/bytes.js'
import { CONTEXT, nextBits } from '../../../../backend/src/protocol/header-rules.js'
import { HeaderChain, type HeaderSource, type SourceTip } from '../../../../src/chain/headers/header-chain.js'
import { MemoryHeaders } from '../../../../src/client/memory-headers.js'

// Branches under the difficulty adjustment of mainnet, where the longer one may have less work. Nobody could mine them for a
// test: here, every hash meets a target of that kind.

const sha256 = (bytes: Uint8Array): Buffer => createHash('sha256').update(bytes).digest()
/** In internal order, the last bytes are the highest. */
const easyHash = (bytes: Uint8Array): Buffer => sha256(bytes).fill(0, 20)
const shownHash = (header: Uint8Array): string => toHex(reversed(easyHash(header)))

const BITS = 0x1800b31d
const FIRST = 900_000 - CONTEXT
const CHECKPOINT = 900_000
const EASIEST = 0x1d00ffff

/** A chain of headers from {@link FIRST} on, as a source of headers. */
class MadeChain {
  private constructor(
    private readonly headers: Uint8Array[],
    private readonly known: { time: number; work: bigint; bits: number }[],
  ) {}

  static upToCheckpoint(): MadeChain {
    return new MadeChain([], []).extend(CHECKPOINT - FIRST + 1, 600)
  }

  get tip(): SourceTip {
    return { height: FIRST + this.headers.length - 1, hash: shownHash(this.headers.at(-1) as Uint8Array) }
  }

  get work(): bigint {
    return this.known.at(-1)?.work ?? 0n
  }

  /** The same chain up to a height. */
  upTo(height: number): MadeChain {
    const count = height - FIRST + 1
    return new MadeChain(this.headers.slice(0, count), this.known.slice(0, count))
  }

  /** Adds blocks that are some seconds apart, with the bits that the chain asks for or others. */
  extend(count: number, apart: number, given?: number): this {
    for (let left = count; left > 0; left--) {
      const { known, headers } = this
      const { time: before = 1_700_000_000, work = 0n } = known.at(-1) ?? {}
      const time = before + apart
      const asked = { known, rule: 'main', bits: BITS, time } as const
      const bits = given ?? (known.length < CONTEXT ? BITS : nextBits(asked))
      const last = headers.at(-1)
      const previous = last === undefined ? '00'.repeat(32) : shownHash(last)
      headers.push(
        encodeHeader({ version: apart, previous, root: 'ab'.repeat(32), time, bits, nonce: headers.length }),
      )
      known.push({ time, bits, work: work + workOf(bits) })
    }
    return this
  }

  source: HeaderSource = {
    name: 'a source',
    headers: async ({ from, count }) => joinBytes(this.headers.slice(from - FIRST, from - FIRST + count)),
  }
}

async function setUp(minimumWork = 0n) {
  const base = MadeChain.upToCheckpoint()
  const checkpoint = { height: CHECKPOINT, hash: base.tip.hash, work: 0n, minimumWork }
  const store = new MemoryHeaders()
  const chain = new HeaderChain({
    ...{ store, checkpoint, network: 'main', page: 10_000, turn: 60_000 },
    ...{ now: () => 4_000_000_000_000, clock: () => 0, hash: easyHash, slice: () => new TimeSlice() },
  })
  await chain.begin(base.source, base.tip)
  const forks: number[] = []
  const follow = async ({ source, tip }: MadeChain): Promise<void> => {
    await chain.follow(source, { tip, onFork: (height) => forks.push(height) })
  }
  const isAt = ({ tip }: MadeChain): void => {
    expect(chain.tip?.height).toBe(tip.height)
    expect(chain.tip && shownHash(chain.tip.header)).toBe(tip.hash)
  }
  return { base, chain, store, follow, isAt, forks }
}

test('a longer branch with less work does not replace a shorter one, and is replaced by it', async () => {
  const { base, follow, isAt, forks } = await setUp()
  const honest = base.upTo(CHECKPOINT).extend(700, 600)
  const easier = honest.upTo(CHECKPOINT + 100).extend(700, 1200)
  expect(easier.tip.height).toBeGreaterThan(honest.tip.height)
  expect(easier.work).toBeLessThan(honest.work)
  await follow(honest)
  await follow(easier)
  isAt(honest)
  expect(forks).toEqual([])

  const other = await setUp()
  await other.follow(easier)
  other.isAt(easier)
  await other.follow(honest)
  other.isAt(honest)
  expect(other.forks).toEqual([CHECKPOINT + 101])
})

test('the work of blocks that a branch has replaced makes no chain believed', async () => {
  // More than that of 29 blocks, and less than that of 31.
  const { base, chain, follow, isAt } = await setUp(30n * workOf(BITS))
  const first = base.upTo(CHECKPOINT).extend(20, 600)
  const branch = base.upTo(CHECKPOINT + 5).extend(20, 600)
  await follow(first)
  await follow(branch)
  isAt(branch)
  expect(chain.hasEnoughWork).toBe(false)
  await follow(branch.extend(15, 600))
  expect(chain.hasEnoughWork).toBe(true)
})

test('a chain that begins again, as its store was emptied, is believed when it has enough work again', async () => {
  const { base, chain, store, follow } = await setUp(30n * workOf(BITS))
  const honest = base.upTo(CHECKPOINT).extend(40, 600)
  await follow(honest)
  expect(chain.hasEnoughWork).toBe(true)
  await store.clear()
  await chain.load()
  await chain.begin(base.source, base.tip)
  const withheld = honest.upTo(CHECKPOINT + 20)
  await follow(withheld)
  const block = { height: CHECKPOINT + 20, root: 'ab'.repeat(32) }
  expect(await chain.verdict(block)).toBe('unknown')
  await follow(honest)
  expect(await chain.verdict(block)).toBe('yes')
})

test('a branch counts as soon as it has more work', async () => {
  const { base, follow, isAt, forks } = await setUp()
  const honest = base.upTo(CHECKPOINT).extend(700, 600)
  const easier = honest.upTo(CHECKPOINT + 100).extend(700, 1200)
  await follow(honest)
  while (easier.work <= honest.work) {
    await follow(easier)
    isAt(honest)
    easier.extend(150, 300)
  }
  await follow(easier)
  isAt(easier)
  expect(forks).toEqual([CHECKPOINT + 101])
})

test.each([
  ['the checkpoint', CHECKPOINT],
  ['near the tip', CHECKPOINT + 690],
])('a long branch of the least difficulty from %s on is refused at its first block', async (_, height) => {
  const { base, follow, isAt, forks } = await setUp()
  const honest = base.upTo(CHECKPOINT).extend(700, 600)
  await follow(honest)
  const spam = honest.upTo(height).extend(5000, 600, EASIEST)
  await expect(follow(spam)).rejects.toThrow(`the header at ${height + 1} has the target 1d00ffff`)
  isAt(honest)
  expect(forks).toEqual([])
})

test('a branch that leaves the chain below the checkpoint is not followed, whatever work it has', async () => {
  const { base, follow, isAt } = await setUp()
  const honest = base.upTo(CHECKPOINT).extend(20, 600)
  await follow(honest)
  const below = base.upTo(CHECKPOINT - 5).extend(500, 300)
  expect(below.work).toBeGreaterThan(honest.work)
  await expect(follow(below)).rejects.toThrow(`its chain does not contain the checkpoint at ${CHECKPOINT}`)
  isAt(honest)
})
