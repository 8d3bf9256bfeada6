import { nativeHash256 } from '../../../backend/src/graph/native-hash.js'
import { concatBytes, toHex, utf8 } from '../../../backend/src/protocol/bytes.js'
import type { Deployment } from '../../../backend/src/protocol/mint.js'
import { encodeOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { TOPICS } from '../../../backend/src/protocol/profile.js'
import type { MineIndex } from '../../mining/mine-index.js'
import type { Node } from '../../server/node.js'
import type { Submit } from '../../server/submission/submission-queue.js'
import { CommandError } from '../command-error.js'
import type { MadeUpTransaction } from '../made-up-money.js'
import type { MiningProgress } from '../mining-progress.js'

/** A local network that is to be filled. */
export interface Network {
  deployment: Deployment
  graph: Node['graph']
  /** Takes mints. */
  index: MineIndex
  /** Takes all else, for `tm_ordinals`. */
  submit: Submit
  progress: MiningProgress
  /** Ends the filling between two submissions, or in the search for a nonce. */
  signal: AbortSignal
  /** Threads that search; unless set, one per core. */
  workers?: number
}

/**
 * Where the coin comes from that pays for something, the same one each time: what a start before this one submitted is
 * the same transaction now, and is not submitted again. The genesis is another one in each network.
 */
export function nowhereFor({ deployment }: Network, what: string): string {
  return toHex(nativeHash256(concatBytes(encodeOutpoint(deployment.genesis), utf8(what))))
}

/**
 * Submits a transaction, unless all of it is there.
 *
 * @param about.outputs How many it has.
 * @param about.called What it is to whoever reads an error.
 * @throws CommandError where not all of its outputs are taken; SubmissionError where it is refused as a whole.
 */
export async function submitOnce(
  { graph, submit, signal }: Network,
  { txid, beef }: MadeUpTransaction,
  { outputs, called }: { outputs: number; called: string },
): Promise<void> {
  const missing = async (): Promise<number> => {
    const admissions = await graph.admissions.ofTransaction(txid)
    return outputs - admissions.filter(({ topic }) => topic === TOPICS.ordinals).length
  }
  signal.throwIfAborted()
  if ((await missing()) === 0) return
  await submit({ beef, topics: [TOPICS.ordinals] })
  const left = await missing()
  if (left > 0)
    throw new CommandError(
      `the server does not take ${left} of ${outputs} outputs of ${called}: its log says why`,
    )
}
