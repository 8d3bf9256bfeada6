import { monotonic } from '../../backend/src/protocol/monotonic.js'
import { unlessAborted } from './bounded-fetch.js'
import { RecentMap } from './segment-store.js'
import type { VerifiedOutput } from './verify-output.js'

/** How many tips of names and ordinals are remembered. */
const MAX_TIPS = 500

/**
 * How long an output counts as in its block without being checked again, in milliseconds: about as long as the next block takes.
 */
const MAX_AGE_IN_BLOCK = 600_000

/** An output with a copy of its content: a view would keep the whole proof in memory. */
export function copied(output: VerifiedOutput): VerifiedOutput {
  const { content } = output
  return content === undefined ? output : { ...output, content: { ...content, body: content.body.slice() } }
}

/** The tips of names and ordinals that were asked for lately, or are being asked for. */
export class RecentTips {
  private readonly tips = new RecentMap<{ tip: Promise<unknown>; until: number }>(MAX_TIPS)

  /** @param maxAge In milliseconds. */
  constructor(private readonly maxAge: number) {}

  /**
   * @param ask Must not use the signal of one caller: others may wait for the answer as well.
   * @throws what `ask` throws; the reason of the signal.
   */
  async get<Tip>(key: string, ask: () => Promise<Tip>, signal: AbortSignal | undefined): Promise<Tip> {
    const known = this.tips.get(key)
    const tip = known && monotonic() < known.until ? (known.tip as Promise<Tip>) : this.asked(key, ask())
    return await unlessAborted(tip, signal)
  }

  private asked<Tip>(key: string, tip: Promise<Tip>): Promise<Tip> {
    const askedAt = monotonic()
    const entry = { tip, until: Number.POSITIVE_INFINITY }
    this.tips.set(key, entry)
    tip.then(
      () => {
        entry.until = askedAt + this.maxAge
      },
      () => {
        if (this.tips.get(key) === entry) this.tips.delete(key)
      },
    )
    return tip
  }
}

/**
 * The verified outputs that were used last. None is kept for long: a block may be replaced, and a transaction in no block, too.
 */
export class OutputCache {
  private readonly outputs: RecentMap<{ output: VerifiedOutput; until: number }>

  constructor(
    private readonly maxBytes: number,
    private readonly maxAge: number,
  ) {
    this.outputs = new RecentMap(maxBytes, ({ output }) => weightOf(output))
  }

  get(key: string): VerifiedOutput | undefined {
    const known = this.outputs.get(key)
    return known !== undefined && monotonic() <= known.until ? known.output : undefined
  }

  add(key: string, output: VerifiedOutput): void {
    if (weightOf(output) > this.maxBytes / 4) return
    const maxAge = output.height === undefined ? this.maxAge : MAX_AGE_IN_BLOCK
    this.outputs.set(key, { output: copied(output), until: monotonic() + maxAge })
  }
}

const OUTPUT_BYTES = 500

function weightOf({ content }: VerifiedOutput): number {
  return OUTPUT_BYTES + (content?.body.length ?? 0)
}
