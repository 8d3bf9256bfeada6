import { vi } from 'vitest'
import type { LocalWriter } from '../../../backend/src/writer/local-writer.js'
import type { WriteQueue } from '../../../backend/src/writer/queue.js'
import type { Node } from '../../../src/server/node.js'

/** What writes to the log of a node, in this thread. */
export function writerOf({ store }: Pick<Node, 'store'>): LocalWriter {
  return (store as unknown as { options: { writer: LocalWriter } }).options.writer
}

/** Where writes of a node wait while a test holds them. */
export interface HeldWrites {
  /** How many have come since. */
  waiting(): number
  /** Lets them go on. */
  release(): void
}

/** From now on nothing is written to a node; submissions wait in their order. */
export function holdWrites(node: Pick<Node, 'store'>): HeldWrites {
  const { queue } = writerOf(node) as unknown as { queue: WriteQueue }
  const added = vi.spyOn(queue, 'add')
  queue.hold()
  return {
    waiting: () => added.mock.calls.length,
    release() {
      added.mockRestore()
      queue.release()
    },
  }
}
