import type { Deployment } from '../../backend/src/protocol/mint.js'
import { monotonic } from '../../backend/src/protocol/monotonic.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import { unlessAborted } from './bounded-fetch.js'
import type { ClaimedBlock } from './bundle.js'
import { HeadersError } from './errors.js'
import { type KnownName, mintIn, placesIn } from './known-name.js'
import { RecentMap, type SegmentStore } from './segment-store.js'
import { type BlockCheck, TreeSegments } from './tree-segments.js'
import { type Headers, isKnownRoot } from './verify-transactions.js'

/** How many segments from a store are kept decoded. */
const MAX_READ = 2000

/** A question with headers: they alone prove anything. */
interface Asked {
  name: string
  deployment: Deployment
  chainTracker: Exclude<Headers, string>
}

/**
 * Verified parts of trees in a store, which are neither fetched nor verified again. Make one per store and keep it: concurrent
 * resolutions share what they fetch.
 */
export class Segments {
  /** Segments from the store, by key. */
  private readonly read = new RecentMap<Promise<unknown>>(MAX_READ)
  /** What resolutions are fetching, by the index and what they lack. */
  private readonly fetching = new Map<string, Promise<void>>()

  private readonly store: SegmentStore

  constructor({ store }: { store: SegmentStore }) {
    this.store = store
  }

  /** The memory of one resolution about a name; undefined without headers. */
  recall(asked: Omit<Asked, 'chainTracker'> & { chainTracker: Headers }): NameMemory | undefined {
    const { name, deployment, chainTracker } = asked
    if (chainTracker === 'scripts only') return undefined
    const segments = new TreeSegments(deployment, this.store, this.read)
    return new NameMemory({ name, deployment, chainTracker }, segments, this.fetching)
  }
}

export class NameMemory {
  /** The blocks that this resolution has asked the chain tracker about, or has verified. */
  private readonly blocks = new Map<string, boolean>()
  /** Set if it is unknown whether earlier results still hold. */
  failure: HeadersError | undefined

  constructor(
    private readonly asked: Asked,
    private readonly segments: TreeSegments,
    private readonly fetching: Map<string, Promise<void>>,
  ) {}

  /**
   * Asks an index with what is known of the name. If another resolution is fetching from that index what this one lacks, too, it
   * goes first, and this one then knows more.
   *
   * @param bounds.patience How long to wait for others, in milliseconds.
   */
  async share<Answer>(
    index: string,
    { signal, patience }: { signal: AbortSignal; patience: number },
    ask: (known: KnownName | undefined) => Promise<Answer>,
  ): Promise<Answer> {
    const end = monotonic() + patience
    let known = await this.known(signal)
    while (known !== undefined && mintIn(known, this.asked.name) === undefined) {
      const key = `${index} ${this.furthest(known)}`
      const other = this.fetching.get(key)
      if (other === undefined) {
        const asking = ask(known).finally(() => this.fetching.delete(key))
        const ended = (): void => undefined
        this.fetching.set(key, asking.then(ended, ended))
        return await asking
      }
      const left = end - monotonic()
      if (left <= 0) break
      await unlessAborted(withinTime(other, left), signal)
      known = await this.known(signal)
    }
    return await ask(known)
  }

  private furthest(known: KnownName): string {
    const { deployment } = this.asked
    return formatOutpoint(placesIn(known, this.asked).nodes[0] ?? deployment.genesis)
  }

  /** What is known; undefined if the chain tracker does not say whether it still holds. */
  private async known(signal: AbortSignal): Promise<KnownName | undefined> {
    const { name, chainTracker } = this.asked
    const isInChain = async (block: ClaimedBlock): Promise<boolean> => {
      const answer =
        this.blocks.get(blockKey(block)) ?? (await isKnownRoot(chainTracker, { ...block, signal }))
      this.blocks.set(blockKey(block), answer)
      return answer
    }
    try {
      const known = await unlessAborted(this.segments.known(name, isInChain), signal)
      this.failure = undefined
      return known
    } catch (error) {
      if (!(error instanceof HeadersError)) throw error
      this.failure = error
      return undefined
    }
  }

  async keep(verified: KnownName, before: KnownName | undefined): Promise<void> {
    const highest = verified.steps.at(-1) ?? verified.line.at(-1)
    if (highest !== undefined) this.blocks.set(blockKey(highest), true)
    await this.segments.keep(this.asked.name, verified, before)
  }

  /** What is known of the name by the blocks that were asked about or verified, without asking the chain tracker again. */
  async lately(): Promise<KnownName> {
    const isInChain: BlockCheck = async (block) => this.blocks.get(blockKey(block)) === true
    return await this.segments.known(this.asked.name, isInChain)
  }
}

function blockKey({ height, root }: ClaimedBlock): string {
  return `${height} ${root}`
}

async function withinTime(waiting: Promise<void>, milliseconds: number): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds)
  })
  await Promise.race([waiting, late]).finally(() => clearTimeout(timer))
}
