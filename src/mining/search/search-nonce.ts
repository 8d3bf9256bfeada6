import { equalBytes } from '../../../backend/src/protocol/bytes.js'
import { isNameCharacter } from '../../../backend/src/protocol/mine-node.js'
import { meetsDifficulty, proofOfWork } from '../../../backend/src/protocol/mint.js'
import { monotonic } from '../../../backend/src/protocol/monotonic.js'
import { coreCount, workerHost } from '../../client/workers.js'
import { MAX_PREFIX, NonceScanner } from './nonce-scanner.js'
import type { KernelName } from './plain-kernel.js'
import { SearchError } from './search-error.js'
import { searchInWorkers, type WorkerTask } from './search-workers.js'
import { openKernel } from './simd-kernel.js'

export { SearchError, type SearchErrorCode } from './search-error.js'

export interface SearchOptions {
  /** The seed of the node to mint from: 32 bytes in internal order, or none for the root as deployed. */
  seed: Uint8Array
  /** The character to claim: `a-z`, `0-9` or `-`. */
  character: string
  /** Zero bits that the hash, read byte-reversed, must start with: 1 to 64. */
  difficulty: number
  /** The start of the nonce, 0 to 8 bytes: the owner commitment, in a tree that binds work to its owner. */
  noncePrefix?: Uint8Array
  /** By default, one per core. 0 searches in this thread, in slices, which is the default where workers are not available. */
  workers?: number
  /** The URL of the worker module, `search-worker.js`, if a bundler has moved it away from this one. */
  workerUrl?: URL | string
  /** By default, four nonces at once if WebAssembly has SIMD, otherwise plain JavaScript. */
  kernel?: KernelName
  /** Ends the search at once; in this thread, at the end of a slice. */
  signal?: AbortSignal
  /** Called about four times a second. Throwing ends the search. */
  onProgress?: (progress: SearchProgress) => void
}

/** More than any machine has cores. */
const MOST_WORKERS = 1024

/**
 * Searches a nonce for a mint, with which `hash256(seed || character || nonce)`, read byte-reversed, starts with `difficulty`
 * zero bits. Runs in Node and in browsers; see docs/covenant.md.
 *
 * @returns the nonce, verified: 22 bytes, or 54 for the root as deployed, prefix included, so that the message fits one block of
 * SHA-256. `hashes` counts those that the workers have reported by then.
 * @throws the reason of the signal; SearchError `BAD_SEED`, `BAD_CHARACTER`, `BAD_DIFFICULTY`, `BAD_PREFIX`, `BAD_WORKERS` for
 * invalid options, `UNAVAILABLE` if workers or the requested kernel are not, `WORKER_FAILED` if a worker fails, and `BAD_NONCE`
 * if its result is wrong.
 */
export async function searchNonce(options: SearchOptions): Promise<{ nonce: Uint8Array; hashes: number }> {
  requireValidOptions(options)
  const { seed, character, difficulty, noncePrefix = new Uint8Array(), kernel, signal } = options
  signal?.throwIfAborted()
  const host = options.workers === 0 ? undefined : await workerHost()
  const workers = options.workers ?? (host === undefined ? 0 : await coreCount())
  if (workers > 0 && host === undefined)
    throw new SearchError('UNAVAILABLE', 'workers are not available here')
  signal?.throwIfAborted()

  const meter = new ProgressMeter({ difficulty, report: options.onProgress, now: monotonic() })
  const onHashes = (hashes: number): void => meter.count(hashes, monotonic())
  const task: WorkerTask = { seed, character, difficulty, noncePrefix, kernel }
  const nonce =
    host === undefined
      ? await searchInThread({ task, signal, onHashes })
      : await searchInWorkers({ task, host, workers, url: workerUrl(options), signal, onHashes })
  if (!meetsDifficulty(proofOfWork({ seed, character, nonce }), difficulty)) {
    throw new SearchError('BAD_NONCE', `the worker's nonce has fewer than ${difficulty} zero bits`)
  }
  if (!equalBytes(nonce.subarray(0, noncePrefix.length), noncePrefix)) {
    throw new SearchError('BAD_NONCE', "the worker's nonce does not start with the prefix")
  }
  return { nonce, hashes: meter.hashes }
}

/** Computed on use: bundles in CommonJS format have no URL of their own. */
function workerUrl(options: SearchOptions): URL | string {
  return options.workerUrl ?? new URL('./search-worker.js', import.meta.url)
}

function requireValidOptions(options: SearchOptions): void {
  const { seed, character, difficulty, noncePrefix, workers = 0 } = options
  if (seed.length !== 0 && seed.length !== 32) {
    throw new SearchError('BAD_SEED', `a seed has 32 bytes or none, not ${seed.length}`)
  }
  if (character.length !== 1 || !isNameCharacter(character.charCodeAt(0))) {
    throw new SearchError('BAD_CHARACTER', `names cannot contain ${JSON.stringify(character)}`)
  }
  if (!Number.isInteger(difficulty) || difficulty < 1 || difficulty > 64) {
    throw new SearchError('BAD_DIFFICULTY', `a difficulty is 1 to 64 bits, not ${difficulty}`)
  }
  if (noncePrefix !== undefined && noncePrefix.length > MAX_PREFIX) {
    throw new SearchError('BAD_PREFIX', `a prefix has 0 to ${MAX_PREFIX} bytes, not ${noncePrefix.length}`)
  }
  if (!Number.isInteger(workers) || workers < 0 || workers > MOST_WORKERS) {
    throw new SearchError('BAD_WORKERS', `workers are 0 to ${MOST_WORKERS}, not ${workers}`)
  }
}

/** The length of a slice in milliseconds: one frame of a screen. */
const SLICE = 16

/**
 * Searches in this thread, in slices between which other work runs: for hosts without workers.
 *
 * @param search.onHashes Called with the number of further hashes.
 * @throws the reason of the signal, at the end of a slice; what `onHashes` throws.
 */
export async function searchInThread(search: {
  task: WorkerTask
  signal?: AbortSignal
  onHashes: (hashes: number) => void
}): Promise<Uint8Array> {
  const { task, signal, onHashes } = search
  const scanner = new NonceScanner({ task, kernel: await openKernel(task.kernel) })
  for (;;) {
    signal?.throwIfAborted()
    const { hashes, nonce } = scanner.scanFor(SLICE)
    onHashes(hashes)
    if (nonce !== undefined) return nonce
    await new Promise((resume) => setTimeout(resume))
  }
}

export interface SearchProgress {
  /** Hashes tried by all workers so far. */
  hashes: number
  /** The rate over the last few seconds. */
  hashesPerSecond: number
  /** How long a search of this difficulty takes on average at this rate. */
  expectedSeconds: number
  /** The probability of having found a nonce by now: 1 − (1 − 2^−difficulty)^hashes. */
  luck: number
}

/** Milliseconds between two reports. */
const INTERVAL = 250
/** How many reports the rate is measured over: five seconds. */
const WINDOW = 20

/** Counts the hashes of a search, and reports them about four times a second. */
export class ProgressMeter {
  readonly #difficulty: number
  readonly #report: ((progress: SearchProgress) => void) | undefined
  /** The counts at the last reports, the oldest first. */
  readonly #counts: { time: number; hashes: number }[] = []
  #last: { time: number; hashes: number }
  #hashes = 0

  /** @param meter.now The time in milliseconds, from any starting point. */
  constructor(meter: {
    difficulty: number
    report?: (progress: SearchProgress) => void
    now: number
  }) {
    this.#difficulty = meter.difficulty
    this.#report = meter.report
    this.#last = { time: meter.now, hashes: 0 }
  }

  get hashes(): number {
    return this.#hashes
  }

  count(hashes: number, now: number): void {
    this.#hashes += hashes
    if (now - this.#last.time < INTERVAL) return
    this.#counts.push(this.#last)
    if (this.#counts.length > WINDOW) this.#counts.shift()
    this.#last = { time: now, hashes: this.#hashes }
    const { time, hashes: before } = this.#counts[0] ?? this.#last
    const hashesPerSecond = ((this.#hashes - before) / (now - time)) * 1000
    this.#report?.({
      hashes: this.#hashes,
      hashesPerSecond,
      expectedSeconds: 2 ** this.#difficulty / hashesPerSecond,
      luck: luckOf(this.#hashes, this.#difficulty),
    })
  }
}

/** Does not round small numbers away: with 64 bits, 1 − 2^−64 is 1 in floating point. */
function luckOf(hashes: number, difficulty: number): number {
  return -Math.expm1(hashes * Math.log1p(-(2 ** -difficulty)))
}
