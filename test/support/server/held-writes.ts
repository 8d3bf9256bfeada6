import { jest } from '@jest/globals'
import { FactStore } from '../../../backend/src/read/fact-store.js'
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
  /** Lets them go on; resolves when the first may. */
  release(): Promise<void>
}

/** From now on no submission to a node is written, whatever its store; they wait in their order. */
export function holdWrites({ store, overlay }: Pick<Node, 'store' | 'overlay'>): HeldWrites {
  if (store instanceof FactStore) {
    const { queue } = writerOf({ store }) as unknown as { queue: WriteQueue }
    const added = jest.spyOn(queue, 'add')
    queue.hold()
    return {
      waiting: () => added.mock.calls.length,
      async release() {
        added.mockRestore()
        queue.release()
      },
    }
  }
  const { writeLock } = overlay.engine
  const needed = jest.spyOn(writeLock, 'runIfNeeded')
  let release = (): void => {}
  const held = writeLock.run(
    async () =>
      await new Promise<void>((resolve) => {
        release = resolve
      }),
  )
  return {
    waiting: () => needed.mock.calls.length,
    async release() {
      needed.mockRestore()
      release()
      await held
    },
  }
}
