import type { GivenTracker } from '../../../src/chain/tracker/given-headers.js'
import type { HeaderChain } from './header-chain.js'

/** The chain tracker of a host, which says of a chain what a node would. */
export class HostTracker implements GivenTracker {
  mood: 'answers' | 'fails' | 'says nothing' = 'answers'
  /** The tip that it knows, where it has not read the whole chain yet. */
  syncedTo = Number.POSITIVE_INFINITY
  /** Called with every question, before it is answered. */
  onQuestion: ((question: string) => void) | undefined
  /** Everything that it was asked: `tip`, or `<height> <root>`. */
  readonly asked: string[] = []

  constructor(private readonly chain: HeaderChain) {}

  isValidRootForHeight(root: string, height: number): Promise<boolean> {
    return this.answer(
      `${height} ${root}`,
      () => height <= this.syncedTo && this.chain.rootAt(height) === root,
    )
  }

  currentHeight(): Promise<number> {
    return this.answer('tip', () => Math.min(this.chain.bestTip.height, this.syncedTo))
  }

  private async answer<Answer>(question: string, answer: () => Answer): Promise<Answer> {
    this.asked.push(question)
    this.onQuestion?.(question)
    if (this.mood === 'says nothing') return await new Promise<Answer>(() => {})
    if (this.mood === 'fails') throw new Error('the tracker fails')
    return answer()
  }
}
