import type { TransactionRecord } from '../../../backend/src/graph/records.js'
import {
  AncestorsWorker,
  type AncestorsWorkerOptions,
} from '../../../src/chain/ancestors/ancestors-worker.js'
import { ChainSourceError } from '../../../src/chain/sources/errors.js'
import { admitBeef } from '../../../src/server/writer/admit.js'
import { recordOf } from '../protocol/block.js'
import type { FakeTransaction } from '../protocol/fake-chain.js'
import { SILENT, type TestServer } from '../server/test-server.js'

export const HEIGHT = 800_000

export const proven = (transaction: FakeTransaction): TransactionRecord => recordOf(transaction, HEIGHT)

/** A worker over a node that does not follow by itself, with a clock and a source of its own. */
export async function workerOver(server: TestServer, options: Partial<AncestorsWorkerOptions> = {}) {
  const known = new Map<string, FakeTransaction>()
  const asked: string[] = []
  const clock = { now: 1_000_000 }
  /** Called with each question, before it is answered. */
  const hooks = { onQuestion: async (_txid: string, _limits: { maxBytes: number }): Promise<void> => {} }
  const { node } = server
  const create = () =>
    new AncestorsWorker({
      queue: node.ancestors,
      store: node.graph,
      source: {
        transaction: async (txid, limits) => {
          asked.push(txid)
          await hooks.onQuestion(txid, limits)
          const found = known.get(txid)
          if (found !== undefined && found.raw.length > limits.maxBytes)
            throw new ChainSourceError('TOO_LARGE', `${txid} is longer than ${limits.maxBytes} bytes`)
          return found && proven(found)
        },
      },
      admit: ({ txid, beef }) => admitBeef(node, { txid, beef: () => beef }),
      perOrdinal: { maxTransactions: 1000, maxBytes: 1_000_000 },
      limits: { maxTransactions: 100, maxBytes: 1_000_000 },
      logger: SILENT,
      pause: 0,
      rest: 0,
      now: () => clock.now,
      ...options,
    })
  const know = (...transactions: FakeTransaction[]): void => {
    for (const transaction of transactions) known.set(transaction.txid, transaction)
  }
  return { asked, clock, hooks, know, create }
}
