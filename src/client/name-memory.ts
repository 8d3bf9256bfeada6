import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import { unlessAborted } from './bounded-fetch.js'
import type { ClaimedBlock } from './bundle.js'
import { HeadersError } from './errors.js'
import { type KnownName, mintIn, placesIn } from './known-name.js'
import type { SegmentStore } from './segment-store.js'
import { Segments } from './segments.js'
import { knownHistory, type VerifiedHistory } from './verify-history.js'
import type { SoughtName } from './verify-name.js'
import { type Headers, isKnownRoot } from './verify-transactions.js'

/** What resolutions are fetching from an index, by what they lack; for each store. */
const fetching = new WeakMap<SegmentStore, Map<string, Promise<void>>>()

type Asked = Omit<SoughtName, 'earlier'> & { chainTracker: Exclude<Headers, string>; segments: SegmentStore }

/** What one resolution knows of a name, by a store that it shares with others. */
export class NameMemory {
  private readonly segments: Segments
  /** The blocks that this resolution has asked the chain tracker about, or has verified. */
  private readonly blocks = new Map<string, boolean>()

  private constructor(private readonly asked: Asked) {
    this.segments = new Segments(asked.segments, asked.deployment)
  }

  /** Undefined without a store, and without headers, which alone prove anything. */
  static of(
    asked: Omit<Asked, 'chainTracker' | 'segments'> & { chainTracker: Headers; segments?: SegmentStore },
  ): NameMemory | undefined {
    const { chainTracker, segments } = asked
    return segments === undefined || chainTracker === 'scripts only'
      ? undefined
      : new NameMemory({ ...asked, chainTracker, segments })
  }

  /**
   * Asks an index with what is known of the name. If another resolution is fetching from that index what this one lacks as well,
   * it goes first, and this one then knows more.
   *
   * @param bounds.patience How long to wait for others, in milliseconds.
   */
  async share<Answer>(
    index: string,
    { signal, patience }: { signal: AbortSignal; patience: number },
    ask: (known: KnownName | undefined) => Promise<Answer>,
  ): Promise<Answer> {
    const end = performance.now() + patience
    const others = fetching.get(this.asked.segments) ?? new Map<string, Promise<void>>()
    fetching.set(this.asked.segments, others)
    let known = await this.known(signal)
    while (known !== undefined && mintIn(known, this.asked.name) === undefined) {
      const key = `${index} ${this.furthest(known)}`
      const other = others.get(key)
      if (other === undefined) return await asOnly(others, key, async () => await ask(known))
      const left = end - performance.now()
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
      return await unlessAborted(this.segments.known(name, isInChain), signal)
    } catch (error) {
      if (error instanceof HeadersError) return undefined
      throw error
    }
  }

  /** Keeps what was verified. */
  async keep(verified: KnownName, before: KnownName | undefined): Promise<void> {
    const highest = verified.steps.at(-1) ?? verified.line.at(-1)
    if (highest !== undefined) this.blocks.set(blockKey(highest), true)
    await this.segments.keep(this.asked.name, verified, before)
  }

  /** The name as far as it is known after all indexes were asked; undefined if its origin is not known. */
  async history(): Promise<VerifiedHistory | undefined> {
    const isInChain = async (block: ClaimedBlock): Promise<boolean> =>
      this.blocks.get(blockKey(block)) === true
    return knownHistory(this.asked, await this.segments.known(this.asked.name, isInChain))
  }
}

function blockKey({ height, root }: ClaimedBlock): string {
  return `${height} ${root}`
}

/** Works while others who come with the same key wait. */
async function asOnly<Answer>(
  all: Map<string, Promise<void>>,
  key: string,
  work: () => Promise<Answer>,
): Promise<Answer> {
  let release = (): void => undefined
  const working = new Promise<void>((resolve) => {
    release = resolve
  })
  all.set(key, working)
  try {
    return await work()
  } finally {
    all.delete(key)
    release()
  }
}

async function withinTime(waiting: Promise<void>, milliseconds: number): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds)
  })
  await Promise.race([waiting, late]).finally(() => clearTimeout(timer))
}
