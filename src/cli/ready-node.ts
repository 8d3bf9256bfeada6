import { unlessAborted } from '../client/bounded-fetch.js'
import type { Node } from '../server/node.js'
import type { Running } from './command.js'

/**
 * Runs work that admits transactions into the store of a command, and then closes the store. Before the work, the index is
 * completed, and block headers are fetched to the tip, or as far as sources have them: work that needs more of them fails.
 */
export async function whenReady(
  node: Node,
  { output, signal }: Running,
  work: () => Promise<void>,
): Promise<void> {
  try {
    if (node.index.status.state === 'rebuilding') await node.index.run()
    const { headers } = node.overlay.proofs
    if (headers?.fetched !== undefined) {
      const fetched = headers.fetched()
      await output.during(
        () => ({ text: headers.outage ?? '' }),
        () => unlessAborted(fetched, signal),
      )
    }
    await work()
  } finally {
    await node.close()
  }
}
