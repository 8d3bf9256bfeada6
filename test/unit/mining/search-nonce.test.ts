import fc from 'fast-check'
import { nativeHash256 } from '../../../backend/src/graph/native-hash.js'
import { NAME_CHARACTERS } from '../../../backend/src/protocol/mine-node.js'
import { meetsDifficulty, proofOfWork } from '../../../backend/src/protocol/mint.js'
import {
  type SearchOptions,
  type SearchProgress,
  searchNonce,
} from '../../../src/mining/search/search-nonce.js'
import { bytes, bytesOf } from '../../support/protocol/arbitraries.js'

// In this thread: what workers do is tested with those of the package as built.

const seed = new Uint8Array(32).map((_, index) => 3 * index)
const here = (options: Partial<SearchOptions> = {}): SearchOptions => ({
  seed,
  character: 'a',
  difficulty: 8,
  workers: 0,
  ...options,
})
/** A search that no machine ends. */
const endless = (options: Partial<SearchOptions> = {}): SearchOptions => here({ difficulty: 64, ...options })

describe('a search in this thread', () => {
  test('finds nonces with any prefix, as long as they are without one', async () => {
    const options = fc.record({
      noncePrefix: bytes(8),
      seed: fc.oneof(bytesOf(32), bytesOf(0)),
      character: fc.constantFrom(...NAME_CHARACTERS),
      difficulty: fc.integer({ min: 1, max: 16 }),
      kernel: fc.constantFrom('simd' as const, 'plain' as const),
    })
    await fc.assert(
      fc.asyncProperty(options, async (search) => {
        const { nonce } = await searchNonce(here(search))
        expect(nonce.subarray(0, search.noncePrefix.length)).toEqual(search.noncePrefix)
        expect(nonce.length).toBe(search.seed.length === 0 ? 54 : 22)
        const hash = proofOfWork({ ...search, nonce, hash: nativeHash256 })
        expect(meetsDifficulty(hash, search.difficulty)).toBe(true)
      }),
      { numRuns: 60 },
    )
  })

  test('gives two searches of the same two nonces', async () => {
    const [one, two] = await Promise.all([searchNonce(here()), searchNonce(here())])
    expect(one.nonce).not.toEqual(two.nonce)
  })

  test('reports its progress, and lets other work run', async () => {
    const controller = new AbortController()
    const reports: SearchProgress[] = []
    let turns = 0
    const turning = setInterval(() => turns++)
    const onProgress = (progress: SearchProgress): void => {
      reports.push(progress)
      if (reports.length === 2) controller.abort()
    }
    const search = searchNonce(endless({ signal: controller.signal, onProgress }))
    await expect(search).rejects.toMatchObject({ name: 'AbortError' })
    clearInterval(turning)
    expect(turns).toBeGreaterThan(1)
    const [first, second] = reports
    expect(second?.hashes).toBeGreaterThan(first?.hashes ?? 0)
    for (const { hashes, hashesPerSecond, expectedSeconds, luck } of reports) {
      expect(hashesPerSecond).toBeGreaterThan(0)
      expect(expectedSeconds).toBeCloseTo(2 ** 64 / hashesPerSecond)
      expect(luck * 2 ** 64).toBeCloseTo(hashes, 3)
    }
  })

  test('is cancelled with the reason that was given', async () => {
    const reason = new Error('another was faster')
    const controller = new AbortController()
    const onProgress = () => controller.abort(reason)
    const search = searchNonce(endless({ signal: controller.signal, onProgress }))
    await expect(search).rejects.toBe(reason)
  })

  test('does not start where it was cancelled before', async () => {
    const reason = new Error('never mind')
    await expect(searchNonce(endless({ signal: AbortSignal.abort(reason) }))).rejects.toBe(reason)
  })

  test('ends with what the progress callback throws', async () => {
    const error = new Error('the screen is gone')
    const onProgress = (): void => {
      throw error
    }
    await expect(searchNonce(endless({ onProgress }))).rejects.toBe(error)
  })
})

describe('a search is refused', () => {
  test.each<[string, Partial<SearchOptions>]>([
    ['BAD_PREFIX', { noncePrefix: new Uint8Array(9) }],
    ['BAD_SEED', { seed: new Uint8Array(31) }],
    ['BAD_CHARACTER', { character: '' }],
    ['BAD_CHARACTER', { character: 'ab' }],
    ['BAD_DIFFICULTY', { difficulty: 0 }],
    ['BAD_DIFFICULTY', { difficulty: 65 }],
    ['BAD_DIFFICULTY', { difficulty: Number.NaN }],
    ['BAD_WORKERS', { workers: -1 }],
    ['BAD_WORKERS', { workers: 1025 }],
  ])('with %s for %p', async (code, wrong) => {
    await expect(searchNonce(here(wrong))).rejects.toMatchObject({ name: 'SearchError', code })
  })
})
