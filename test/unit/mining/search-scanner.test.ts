import { meetsDifficulty, proofOfWork } from '../../../backend/src/protocol/mint.js'
import { NonceScanner } from '../../../src/mining/search/nonce-scanner.js'
import { COUNTERS, type NonceKernel, PlainKernel } from '../../../src/mining/search/plain-kernel.js'
import { ProgressMeter, type SearchProgress } from '../../../src/mining/search/search-nonce.js'

/** Finds a given nonce, and records its calls. */
class FakeKernel implements NonceKernel {
  readonly name = 'plain'
  readonly prepared: number[][] = []
  readonly scanned: [number, number][] = []
  readonly #isFound: (counter: number) => boolean

  constructor(isFound: (counter: number) => boolean = () => false) {
    this.#isFound = isFound
  }

  prepare({ words }: { words: ArrayLike<number> }): void {
    this.prepared.push(Array.from(words))
  }

  scan(from: number, to: number): number {
    this.scanned.push([from, to])
    for (let counter = from; counter < to; counter++) if (this.#isFound(counter)) return counter
    return to
  }
}

const none = new Uint8Array()
const task = { seed: new Uint8Array(32).fill(1), character: 'b', difficulty: 3, noncePrefix: none }

/** Draws bytes that are all 1, then all 2, and so on. */
function counted(): (bytes: Uint8Array) => void {
  let drawn = 0
  return (bytes) => void bytes.fill(++drawn)
}

describe('a scanner', () => {
  test('goes through a stretch without a gap, and then starts another', () => {
    const kernel = new FakeKernel()
    const scanner = new NonceScanner({ task, kernel, random: counted() })
    const step = 2 ** 22 + 3
    const hashes = Array.from({ length: 5 }, () => scanner.scan(step).hashes)
    const rest = COUNTERS - 3 * step
    expect(hashes).toEqual([step, step, step, rest, step])
    expect(kernel.scanned).toEqual([
      [0, step],
      [step, 2 * step],
      [2 * step, 3 * step],
      [3 * step, COUNTERS],
      [0, step],
    ])
    const [first, second] = kernel.prepared
    // The seed and the character stay; everything else is random again.
    expect(first).toEqual([...Array(8).fill(0x01010101), 0x62010101, ...Array(4).fill(0x01010101)])
    expect(second).toEqual([...Array(8).fill(0x01010101), 0x62020202, ...Array(4).fill(0x02020202)])
    expect(kernel.prepared.length).toBe(2)
  })

  test('counts up to what it found, and goes on behind it', () => {
    const kernel = new FakeKernel((counter) => counter === 0x010203 || counter === 0x010205)
    const scanner = new NonceScanner({ task, kernel, random: counted() })
    const nonce = (low: number) => Uint8Array.of(...Array(19).fill(1), 1, 2, low)
    expect(scanner.scan(COUNTERS)).toEqual({ hashes: 0x010204, nonce: nonce(3) })
    expect(scanner.scan(COUNTERS)).toEqual({ hashes: 2, nonce: nonce(5) })
  })

  test('starts another stretch where the last counter was found', () => {
    const kernel = new FakeKernel((counter) => counter === COUNTERS - 1)
    const scanner = new NonceScanner({ task, kernel, random: counted() })
    expect(scanner.scan(COUNTERS).nonce?.subarray(19)).toEqual(Uint8Array.of(255, 255, 255))
    scanner.scan(10)
    expect(kernel.prepared.length).toBe(2)
  })

  test.each([
    ['a seed', new Uint8Array(32).fill(7), 22],
    ['no seed', new Uint8Array(), 54],
  ])('with %s finds nonces that do, and that are the longest of one block', (_, seed, size) => {
    const scanner = new NonceScanner({
      task: { ...task, seed, character: '-', difficulty: 8 },
      kernel: new PlainKernel(),
    })
    const { nonce = new Uint8Array() } = scanner.scan(COUNTERS)
    expect(nonce.length).toBe(size)
    expect(meetsDifficulty(proofOfWork({ seed, character: '-', nonce }), 8)).toBe(true)
  })

  test('with a prefix puts it after the character, and draws the other bytes for each range', () => {
    const kernel = new FakeKernel((counter) => counter === 0x010203)
    const noncePrefix = new Uint8Array(8).fill(0xee)
    const scanner = new NonceScanner({ task: { ...task, noncePrefix }, kernel, random: counted() })
    const { nonce } = scanner.scan(COUNTERS)
    expect(nonce).toEqual(Uint8Array.of(...noncePrefix, ...Array(11).fill(1), 1, 2, 3))
    for (let stretch = 0; stretch < 2; stretch++) scanner.scan(COUNTERS)
    const start = [...Array(8).fill(0x01010101), 0x62eeeeee, 0xeeeeeeee]
    expect(kernel.prepared).toEqual([
      [...start, 0xee010101, 0x01010101, 0x01010101],
      [...start, 0xee020202, 0x02020202, 0x02020202],
    ])
  })

  test('of the same node starts elsewhere each time', () => {
    const starts = [new FakeKernel(), new FakeKernel()].map((kernel) => {
      new NonceScanner({ task, kernel }).scan(1)
      return kernel.prepared[0]
    })
    expect(starts[0]).not.toEqual(starts[1])
  })

  test('whose time is over has looked at something', () => {
    const kernel = new FakeKernel()
    const { hashes, nonce } = new NonceScanner({ task, kernel }).scanFor(0)
    expect(nonce).toBeUndefined()
    expect(hashes).toBeGreaterThan(0)
    expect(kernel.scanned).toEqual([[0, hashes]])
  })
})

describe('the progress', () => {
  /** The reports of a search that counts these hashes, each 100 ms. */
  function reports(difficulty: number, ...hashes: number[]): SearchProgress[] {
    const said: SearchProgress[] = []
    const meter = new ProgressMeter({ difficulty, report: (progress) => said.push(progress), now: 5000 })
    for (const [index, count] of hashes.entries()) meter.count(count, 5000 + 100 * (index + 1))
    expect(meter.hashes).toBe(hashes.reduce((sum, count) => sum + count, 0))
    return said
  }

  test('is reported when a quarter of a second has passed, with all hashes so far', () => {
    expect(reports(20, 10, 20, 30, 40, 50, 60).map(({ hashes }) => hashes)).toEqual([60, 210])
  })

  test('has the rate, and the time that a search takes at it on average', () => {
    expect(reports(10, 0, 0, 3072)).toEqual([
      expect.objectContaining({ hashesPerSecond: 10240, expectedSeconds: 0.1 }),
    ])
  })

  test('takes the rate of the last five seconds or so', () => {
    const rates = reports(20, ...Array(60).fill(0), ...Array(60).fill(100)).map(
      ({ hashesPerSecond }) => hashesPerSecond,
    )
    expect(rates[19]).toBe(0)
    expect(rates.at(-1)).toBeCloseTo(1000)
  })

  test.each([
    [1, 1, 0.5],
    [1, 2, 0.75],
    [10, 1024, 0.632],
    [22, 2 ** 22, 0.632],
    [22, 2 ** 25, 0.9997],
  ])('of %d bits after %d hashes says how likely it was to have found one', (difficulty, hashes, luck) => {
    expect(reports(difficulty, 0, 0, hashes)[0]?.luck).toBeCloseTo(luck, 3)
  })

  test('of 64 bits does not round to nothing', () => {
    const [progress] = reports(64, 0, 0, 2 ** 24)
    expect((progress?.luck ?? 0) * 2 ** 40).toBeCloseTo(1, 6)
    expect(progress?.expectedSeconds).toBeCloseTo((2 ** 40 * 3) / 10)
  })
})
