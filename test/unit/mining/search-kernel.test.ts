import fc from 'fast-check'
import { nativeHash256 } from '../../../backend/src/graph/native-hash.js'
import { concatBytes } from '../../../backend/src/protocol/bytes.js'
import { meetsDifficulty } from '../../../backend/src/protocol/mint.js'
import {
  COUNTERS,
  type KernelName,
  type NonceKernel,
  zeroBitMasks,
} from '../../../src/mining/search/plain-kernel.js'
import { openKernel } from '../../../src/mining/search/simd-kernel.js'
import { bytesOf } from '../../support/protocol/arbitraries.js'

const kernels: [KernelName, NonceKernel][] = [
  ['simd', await openKernel('simd')],
  ['plain', await openKernel('plain')],
]

/** The fixed bytes of a message, as a kernel takes them. */
function wordsOf(fixed: Uint8Array): number[] {
  const view = new DataView(Uint8Array.from(fixed).buffer)
  return Array.from({ length: fixed.length / 4 }, (_, index) => view.getUint32(4 * index))
}

/** The counters of a range that a kernel finds, one after another. */
function foundBy(kernel: NonceKernel, from: number, to: number): number[] {
  const found: number[] = []
  let at = kernel.scan(from, to)
  for (; at < to; at = kernel.scan(at + 1, to)) found.push(at)
  expect(at).toBe(to)
  return found
}

/** The same by the rule of the protocol. */
function foundByRule(fixed: Uint8Array, difficulty: number, from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, index) => from + index).filter((counter) => {
    const message = concatBytes(fixed, Uint8Array.of(counter >>> 16, counter >>> 8, counter))
    return meetsDifficulty(nativeHash256(message), difficulty)
  })
}

describe.each(kernels)('the %s kernel', (_, kernel) => {
  test('finds what the protocol accepts, all of it and nothing else', () => {
    const range = fc.record({ from: fc.nat({ max: COUNTERS }), size: fc.nat({ max: 300 }) })
    fc.assert(
      fc.property(
        bytesOf(52),
        fc.integer({ min: 1, max: 10 }),
        range,
        (fixed, difficulty, { from, size }) => {
          kernel.prepare({ words: wordsOf(fixed), difficulty })
          const to = Math.min(from + size, COUNTERS)
          expect(foundBy(kernel, from, to)).toEqual(foundByRule(fixed, difficulty, from, to))
        },
      ),
      { numRuns: 60 },
    )
  })

  test('goes to the last counter', () => {
    const fixed = new Uint8Array(52)
    kernel.prepare({ words: wordsOf(fixed), difficulty: 4 })
    const from = COUNTERS - 1000
    const found = foundBy(kernel, from, COUNTERS)
    expect(found).toEqual(foundByRule(fixed, 4, from, COUNTERS))
    expect(found.length).toBeGreaterThan(20)
  })

  test('forgets what it was prepared for before', () => {
    const [one, two] = [new Uint8Array(52).fill(1), new Uint8Array(52).fill(2)]
    for (const fixed of [one, two, one]) {
      kernel.prepare({ words: wordsOf(fixed), difficulty: 7 })
      expect(foundBy(kernel, 0, 2000)).toEqual(foundByRule(fixed, 7, 0, 2000))
    }
  })

  test.each([33, 48, 64])('finds nothing where %d bits are not to be found', (difficulty) => {
    kernel.prepare({ words: wordsOf(new Uint8Array(52)), difficulty })
    expect(kernel.scan(0, 20_000)).toBe(20_000)
  })
})

test('a difficulty in masks is what the protocol makes of it', () => {
  const bits = fc.integer({ min: 0, max: 64 })
  fc.assert(
    fc.property(bytesOf(32), bits, bits, (hash, zeros, difficulty) => {
      // As many zero bits as wanted, and then what comes.
      for (let bit = 0; bit < zeros; bit++) {
        const at = 31 - (bit >> 3)
        hash[at] = (hash[at] ?? 0) & (0xff >>> ((bit & 7) + 1))
      }
      const words = new DataView(hash.buffer, hash.byteOffset)
      const { last, secondToLast } = zeroBitMasks(difficulty)
      const isMet = (words.getInt32(28) & last) === 0 && (words.getInt32(24) & secondToLast) === 0
      expect(isMet).toBe(meetsDifficulty(hash, difficulty))
    }),
    { numRuns: 1000 },
  )
})

describe('a host', () => {
  const web = globalThis as { WebAssembly?: object }
  const { WebAssembly } = web
  afterEach(() => {
    web.WebAssembly = WebAssembly
  })

  const refusing = (name: string) => ({
    instantiate: () => Promise.reject(Object.assign(new Error('not here'), { name })),
  })

  test('without WebAssembly has the plain kernel', async () => {
    delete web.WebAssembly
    expect((await openKernel()).name).toBe('plain')
    await expect(openKernel('simd')).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  })

  test.each(['CompileError', 'EvalError'])('that answers with %s has the plain kernel', async (name) => {
    web.WebAssembly = refusing(name)
    expect((await openKernel()).name).toBe('plain')
    await expect(openKernel('simd')).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  })

  test('that fails otherwise is not passed over', async () => {
    web.WebAssembly = refusing('LinkError')
    await expect(openKernel()).rejects.toMatchObject({ name: 'LinkError' })
  })

  test('with all of it has the fast kernel', async () => {
    expect((await openKernel()).name).toBe('simd')
  })
})
