import { HEADER_BYTES } from '../../backend/src/protocol/block-header.js'
import { CodedError, messageOf } from '../../backend/src/protocol/coded-error.js'
import { HEADER_CHECKPOINTS, type HeaderCheckpoint } from '../../backend/src/protocol/header-checkpoints.js'
import { monotonic } from '../../backend/src/protocol/monotonic.js'
import { HeaderChain, type HeaderSource, showsRoot } from '../chain/headers/header-chain.js'
import { requireArgument } from './arguments.js'
import {
  DEFAULT_TIMEOUT,
  type FetchOptions,
  fetchBounded,
  unlessAborted,
  withTimeLimit,
} from './bounded-fetch.js'
import { hostHash256 } from './bundle.js'
import { MemoryHeaders } from './memory-headers.js'
import { inTurn, Resting } from './resting.js'
import type { SegmentStore } from './segment-store.js'
import { Slots } from './slots.js'
import { ThreadShare } from './thread-share.js'

export type { HeaderSource }

/** A store of texts, with keys like those of segments. What it returns is verified again. */
export type HeaderStore = SegmentStore

export interface OwnHeadersOptions {
  /** The sources, asked one after another; a URL is that of a Chaintracks server (`/v2/headers`). */
  sources: readonly (HeaderSource | string | URL)[]
  /** A block that the chain must have; that of the network by default. */
  checkpoint?: Pick<HeaderCheckpoint, 'height' | 'hash'> & Partial<HeaderCheckpoint>
  /** The network whose rules change the difficulty; `main` by default. */
  network?: 'main' | 'test'
  /** Keeps headers from one run to the next; absent by default. */
  store?: HeaderStore
  /** How soon sources are asked again for new blocks, in milliseconds; 10,000 by default. */
  recheckAfter?: number
  /** Limits for each request; `fetch` for requests to URLs. */
  fetch?: Pick<FetchOptions, 'timeout' | 'fetch'>
  /** The clock, in milliseconds since 1970. */
  now?: () => number
}

/** The headers are not available, or not known yet. */
export class OwnHeadersError extends CodedError {
  override readonly name = 'OwnHeadersError'
  readonly code = 'NO_HEADERS'
}

type AskedSource = Required<HeaderSource>

/** How many headers are asked for at once. */
const PAGE = 2000
/** How many blocks at the tip may be replaced. */
const NEAR_TIP = 100
/** How long a source may take for a page, in milliseconds. */
const PATIENCE = 5000

/**
 * A chain tracker with its own block headers ({@link HeaderChain}), which asks its sources when it needs to. A source can
 * withhold blocks, but cannot move the chain to one with less work.
 */
export class OwnHeaders {
  private readonly chain: HeaderChain
  private readonly checkpoint: HeaderCheckpoint
  private readonly sources: readonly AskedSource[]
  private readonly recheckAfter: number
  private readonly clock: () => number
  private isOpen = false
  private synced: { at: number; error?: OwnHeadersError } = { at: Number.NEGATIVE_INFINITY }
  /** Sources that failed or were slow: skipped while another one answers. */
  private readonly resting = new Resting<AskedSource>()
  /** One job at a time at the upper end of the chain, and one at the lower end. */
  private readonly above = new Slots(1)
  private readonly below = new Slots(1)

  constructor(options: OwnHeadersOptions) {
    requireArgument(
      Array.isArray(options?.sources) && options.sources.length > 0,
      'sources',
      'a list of at least one: URLs of headers services',
    )
    const { network = 'main', now, store, recheckAfter = 10_000, fetch = {} } = options
    const { hash, ...checkpoint } = options.checkpoint ?? HEADER_CHECKPOINTS[network]
    this.checkpoint = { work: 0n, minimumWork: 0n, ...checkpoint, hash: hash.toLowerCase() }
    this.recheckAfter = recheckAfter
    this.clock = now ?? monotonic
    const { timeout = DEFAULT_TIMEOUT / 2 } = fetch
    this.sources = options.sources.map((given) => {
      const source =
        typeof given === 'object' && 'headers' in given
          ? given
          : chaintracksHeaders(String(given), { ...fetch, timeout })
      const { name } = source
      return {
        name,
        headers: (query) => withinTime(source.headers(query), timeout),
        tip: async () => source.tip && (await withinTime(source.tip(), timeout)),
      }
    })
    const folder = `headers-${this.checkpoint.hash}`
    this.chain = new HeaderChain({
      ...{ store: new MemoryHeaders(store && { store, folder }), isOpenToOthers: store !== undefined },
      ...{ checkpoint: this.checkpoint, network, hash: hostHash256, slice: () => new ThreadShare() },
      ...{ now: now ?? Date.now, clock: this.clock, page: PAGE, turn: PATIENCE },
    })
  }

  /**
   * Whether the block at a height has this merkle root.
   *
   * @throws OwnHeadersError if no source shows its header.
   */
  async isValidRootForHeight(root: string, height: number): Promise<boolean> {
    const { chain } = this
    if (!this.isOpen) await this.above.run(() => this.open())
    if (height < chain.from) {
      if (height < chain.from - PAGE && !(await this.isShown(root, height))) return false
      await this.below.run(() => this.extendBelow(height))
    }
    // A question about a final block does not wait for others.
    if (!this.isFinal(height) && !(await this.above.run(() => this.reaches(height)))) return false
    return (await chain.rootAt(height)) === root
  }

  /**
   * The height of the tip; while no source answers, that of the known tip.
   *
   * @throws OwnHeadersError
   */
  async currentHeight(): Promise<number> {
    return await this.above.run(async () => {
      await this.open()
      await this.syncIfOld().catch((error: unknown) => {
        if (!this.chain.hasEnoughWork) throw error
      })
      return this.tip
    })
  }

  /** How far headers have been fetched, in words, for people who wait for them. */
  get progress(): string {
    return this.chain.progress
  }

  /**
   * Whether any source has this root in its header at a height far below. A proof may name any height, so the headers down to it
   * are fetched only if there is something to verify.
   *
   * @throws OwnHeadersError if none answers.
   */
  private async isShown(root: string, height: number): Promise<boolean> {
    const answers = await this.answers(
      `no block header at ${height}`,
      (source) => showsRoot(source, { root, height }),
      (isShown) => isShown,
    )
    return answers.includes(true)
  }

  /** Whether the block at a height is known without asking a source. */
  private isFinal(height: number): boolean {
    return height <= this.tip - NEAR_TIP && (height <= this.checkpoint.height || this.chain.hasEnoughWork)
  }

  /**
   * Extends the chain to a height, if it is that high.
   *
   * @returns False if no chain can be that high by now, according to the sources.
   * @throws OwnHeadersError if it may be, but no source shows the block.
   */
  private async reaches(height: number): Promise<boolean> {
    const { chain } = this
    // A block near the tip may have been replaced; the known one counts while no source answers.
    if (height > this.tip - NEAR_TIP)
      await this.syncIfOld().catch((error: unknown) => {
        if (height > this.tip) throw error
      })
    if (height > chain.highest() && chain.hasEnoughWork) return false
    if (height > this.tip)
      throw new OwnHeadersError(`no source shows a block at ${height}; the highest is ${this.tip}`)
    if (height <= this.checkpoint.height || chain.hasEnoughWork) return true
    await this.syncIfOld()
    if (chain.hasEnoughWork) return true
    throw new OwnHeadersError(`the chain up to ${this.tip} has too little work: sources withhold the rest`)
  }

  private get tip(): number {
    return this.chain.tip?.height ?? 0
  }

  private async open(): Promise<void> {
    if (this.isOpen) return
    await this.chain.load()
    if (this.chain.tip === undefined)
      await this.answers(
        'no block headers',
        async (source) => this.chain.begin(source, await source.tip()),
        () => true,
      )
    this.isOpen = true
  }

  /** Asks for new blocks, unless that was done lately. */
  private async syncIfOld(): Promise<void> {
    if (this.clock() - this.synced.at < this.recheckAfter) {
      if (this.synced.error !== undefined) throw this.synced.error
      return
    }
    try {
      await this.answers('no block headers', (source) => this.follow(source))
      this.synced = { at: this.clock() }
    } catch (error) {
      if (error instanceof OwnHeadersError) this.synced = { at: this.clock(), error }
      throw error
    }
  }

  /** Follows a source to its tip, as long as each page comes in time. */
  private async follow(source: AskedSource): Promise<void> {
    const tip = await source.tip()
    for (;;) {
      const before = this.tip
      if (await this.chain.follow(source, tip && { tip })) return
      if (this.tip - before < PAGE - 1) throw new OwnHeadersError('it is too slow')
    }
  }

  /** Adds headers below the lowest one, down to a height. */
  private async extendBelow(height: number): Promise<void> {
    const { chain } = this
    const ask = async (source: HeaderSource): Promise<void> => {
      if (!(await chain.extendBelow(source, height))) throw new OwnHeadersError('it has none there')
    }
    while (chain.from > height) await this.answers(`no block header at ${height}`, ask, () => true)
  }

  /**
   * Asks the sources one after another.
   *
   * @param isEnough Whether to stop after an answer; by default, after any answer only resting sources are left out.
   * @returns Their answers.
   * @throws OwnHeadersError if there are none.
   */
  private async answers<Answer>(
    what: string,
    ask: (source: AskedSource) => Promise<Answer>,
    isEnough?: (answer: Answer) => boolean,
  ): Promise<Answer[]> {
    const answers: Answer[] = []
    const failures: string[] = []
    for (const { each: source, isResting } of inTurn(this.sources, this.resting)) {
      if (isEnough === undefined && answers.length > 0 && isResting) break
      try {
        const answer = await ask(source)
        this.resting.delete(source)
        answers.push(answer)
        if (isEnough?.(answer) === true) break
      } catch (error) {
        this.resting.add(source)
        failures.push(`${source.name}: ${messageOf(error)}`)
      }
    }
    if (answers.length > 0) return answers
    throw new OwnHeadersError(`${what}: ${failures.join('; ') || 'there is no source'}`)
  }
}

/** The answer of a source, unless it takes too long. */
async function withinTime<Answer>(answer: Promise<Answer>, milliseconds: number): Promise<Answer> {
  const late = (): Error => new OwnHeadersError(`it took longer than ${milliseconds} ms`)
  return await withTimeLimit({ milliseconds, late }, (signal) => unlessAborted(answer, signal))
}

/** A Chaintracks server: `GET /v2/headers?height=&count=` answers with bytes. */
function chaintracksHeaders(url: string, options: FetchOptions): HeaderSource {
  const name = url.replace(/\/+$/, '')
  return {
    name,
    async headers({ from, count }) {
      const path = `${name}/v2/headers?height=${from}&count=${count}`
      const init = { headers: { Accept: 'application/octet-stream' } }
      const answer = await fetchBounded(path, init, { ...options, maxBytes: count * HEADER_BYTES })
      if (answer.status === 404) return new Uint8Array()
      if (answer.status !== 200) throw new OwnHeadersError(`${path} answers ${answer.status}`)
      return answer.body
    },
  }
}
