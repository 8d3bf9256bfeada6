import { equalBytes } from '../../../backend/src/protocol/bytes.js'
import { isNameCharacter } from '../../../backend/src/protocol/mine-node.js'
import { meetsDifficulty, proofOfWork } from '../../../backend/src/protocol/mint.js'
import { MAX_PREFIX, NonceScanner } from './nonce-scanner.js'
import type { KernelName } from './plain-kernel.js'
import { SearchError } from './search-error.js'
import { searchInWorkers, type WorkerTask, workerHost } from './search-workers.js'
import { openKernel } from './simd-kernel.js'

export { SearchError, type SearchErrorCode } from './search-error.js'

export interface SearchOptions {
  /** The seed of the node to mint from: 32 bytes in internal order, or none for the root as deployed. */
  seed: Uint8Array
  /** The one to claim: `a-z`, `0-9` or `-`. */
  character: string
  /** Zero bits that the hash, read byte-reversed, must start with: 1 to 64. */
  difficulty: number
  /** What the nonce has to start with, 0 to 8 bytes: in a tree that binds work to its owner, the owner commitment. */
  noncePrefix?: Uint8Array
  /** One per core unless set. 0: in this thread, in slices; so it is, too, where unset and no workers are to be had. */
  workers?: number
  /** The module that workers run, where it does not stand beside this one, as in a bundle: `search-worker.js`. */
  workerUrl?: URL | string
  /** Unset: four nonces at once where WebAssembly has SIMD, else plain JavaScript. */
  kernel?: KernelName
  /** Ends the search at once; in this thread, at the end of a slice. */
  signal?: AbortSignal
  /** Called about four times a second. What it throws ends the search. */
  onProgress?: (progress: SearchProgress) => void
}

/** More than any machine has cores: whoever wants more has mistaken something. */
const MOST_WORKERS = 1024

/**
 * Searches a nonce that does for a mint: `hash256(seed || character || nonce)`, read byte-reversed, starts with
 * `difficulty` zero bits (service.md 4.5). In Node and in browsers; see docs/search.md.
 *
 * @returns the nonce, checked by the rule itself: 22 bytes, or 54 for the root as deployed, prefix included, so that the
 * message fits one block of SHA-256. `hashes` are those that the workers have told of by then.
 * @throws the reason of the signal where that aborts: an AbortError unless set.
 * @throws SearchError with `BAD_SEED`, `BAD_CHARACTER`, `BAD_DIFFICULTY`, `BAD_PREFIX`, `BAD_WORKERS` for options that are
 * none, `UNAVAILABLE` for workers or a kernel that are not to be had, `WORKER_FAILED` where a worker breaks off, and
 * `BAD_NONCE` where what was found does not do.
 */
export async function searchNonce(options: SearchOptions): Promise<{ nonce: Uint8Array; hashes: number }> {
  requireValidOptions(options)
  const { seed, character, difficulty, noncePrefix = new Uint8Array(), kernel, signal } = options
  signal?.throwIfAborted()
  const host = options.workers === 0 ? undefined : await workerHost()
  const workers = options.workers ?? host?.cores ?? 0
  if (workers > 0 && host === undefined) throw new SearchError('UNAVAILABLE', 'there are no workers here')
  signal?.throwIfAborted()

  const meter = new ProgressMeter({ difficulty, report: options.onProgress, now: performance.now() })
  const onHashes = (hashes: number): void => meter.count(hashes, performance.now())
  const task: WorkerTask = { seed, character, difficulty, noncePrefix, kernel }
  const nonce =
    host === undefined
      ? await searchInThread({ task, signal, onHashes })
      : await searchInWorkers({ task, host, workers, url: workerUrl(options), signal, onHashes })
  if (!meetsDifficulty(proofOfWork({ seed, character, nonce }), difficulty)) {
    throw new SearchError('BAD_NONCE', `the nonce that was found has fewer than ${difficulty} zero bits`)
  }
  if (!equalBytes(nonce.subarray(0, noncePrefix.length), noncePrefix)) {
    throw new SearchError('BAD_NONCE', 'the nonce that was found does not start with the prefix')
  }
  return { nonce, hashes: meter.hashes }
}

/** Not a constant: a bundle in the old format has no URL of its own. */
function workerUrl(options: SearchOptions): URL | string {
  return options.workerUrl ?? new URL('./search-worker.js', import.meta.url)
}

function requireValidOptions(options: SearchOptions): void {
  const { seed, character, difficulty, noncePrefix, workers = 0 } = options
  if (seed.length !== 0 && seed.length !== 32) {
    throw new SearchError('BAD_SEED', `a seed has 32 bytes or none, not ${seed.length}`)
  }
  if (character.length !== 1 || !isNameCharacter(character.charCodeAt(0))) {
    throw new SearchError('BAD_CHARACTER', `no name has the character ${JSON.stringify(character)}`)
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

/** Milliseconds of a slice: as long as a screen shows one picture. */
const SLICE = 16

/**
 * Searches in this thread, in slices between which all else has its turn: for where workers are not to be had.
 *
 * @param search.onHashes Told how many more hashes were tried.
 * @throws the reason of the signal, after the slice in which it came; what `onHashes` throws.
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

/** How far a search is. */
export interface SearchProgress {
  /** Hashes tried by all workers so far. */
  hashes: number
  /** Over the last few seconds. */
  hashesPerSecond: number
  /** Seconds that a search of this difficulty takes on average at this rate. */
  expectedSeconds: number
  /** How likely it was to have found one by now: 1 − (1 − 2^−difficulty)^hashes, 0 to 1. */
  luck: number
}

/** Milliseconds between two reports. */
const INTERVAL = 250
/** Reports that the rate is measured over: five seconds of them. */
const WINDOW = 20

/** Counts the hashes of a search, and reports them about four times a second. */
export class ProgressMeter {
  readonly #difficulty: number
  readonly #report: ((progress: SearchProgress) => void) | undefined
  /** What was counted at the last reports, the oldest first. */
  readonly #counts: { time: number; hashes: number }[] = []
  #last: { time: number; hashes: number }
  #hashes = 0

  /** @param meter.now The time in milliseconds, since any moment. */
  constructor(meter: {
    difficulty: number
    report?: (progress: SearchProgress) => void
    now: number
  }) {
    this.#difficulty = meter.difficulty
    this.#report = meter.report
    this.#last = { time: meter.now, hashes: 0 }
  }

  /** All that were tried so far. */
  get hashes(): number {
    return this.#hashes
  }

  /** Counts hashes that were tried until `now`. */
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

/** Without rounding the small numbers away: of 64 bits, 1 − 2^−64 is 1 to a computer. */
function luckOf(hashes: number, difficulty: number): number {
  return -Math.expm1(hashes * Math.log1p(-(2 ** -difficulty)))
}
