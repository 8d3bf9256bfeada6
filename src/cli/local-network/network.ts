import { nativeHash256 } from '../../../backend/src/graph/native-hash.js'
import { concatBytes, toHex, utf8 } from '../../../backend/src/protocol/bytes.js'
import type { Deployment } from '../../../backend/src/protocol/mint.js'
import { encodeOutpoint, type Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { TOPICS } from '../../../backend/src/protocol/profile.js'
import type { MineIndex } from '../../mining/mine-index.js'
import { mineName } from '../../mining/mine-name.js'
import { MiningError } from '../../mining/mining-error.js'
import { FAKE_MINT_PAYER } from '../../payments/mints.js'
import type { Node } from '../../server/node.js'
import type { Submit } from '../../server/writer/submission-queue.js'
import { CommandError } from '../command.js'
import type { FakeTransaction } from '../fake-transactions.js'
import type { MiningProgress } from '../mining-progress.js'

export interface LocalNetwork {
  deployment: Deployment
  graph: Node['graph']
  /** Accepts mints. */
  index: MineIndex
  /** Accepts everything else, for `tm_ordinals`. */
  submit: Submit
  progress: MiningProgress
  /** Stops the filling between two submissions, or during a search. */
  signal: AbortSignal
  /** Threads that search; by default, one per core. */
  workers?: number
}

/**
 * The fixed source of a fake coin, derived from its purpose and the network's genesis. So each start makes the same transaction,
 * which is only submitted once.
 */
export function sourceFor({ deployment }: LocalNetwork, what: string): string {
  return toHex(nativeHash256(concatBytes(encodeOutpoint(deployment.genesis), utf8(what))))
}

/**
 * Submits a transaction, unless all of its outputs are admitted already.
 *
 * @param about.outputs The number of its outputs.
 * @param about.called Its name in error messages.
 * @throws CommandError if not all of its outputs are admitted; SubmissionError if it is rejected.
 */
export async function submitOnce(
  { graph, submit, signal }: LocalNetwork,
  { txid, beef }: FakeTransaction,
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

/**
 * Mines the missing characters of a name, without an owner. A taken name is left as it is: an earlier start may have mined it.
 *
 * @returns The origin of the name.
 * @throws what {@link mineName} throws, except `TAKEN`.
 */
export async function ensureName(network: LocalNetwork, name: string): Promise<Outpoint> {
  const { deployment, graph, index, progress, signal, workers } = network
  try {
    await mineName({
      name,
      deployment,
      index,
      ...FAKE_MINT_PAYER,
      // A local network has no block headers.
      chainTracker: 'scripts only',
      signal,
      onEvent: (event) => progress.update(event),
      workers,
    })
  } catch (error) {
    if (!(error instanceof MiningError && error.code === 'TAKEN')) throw error
  }
  const origin = await graph.names.originOf(name)
  if (origin === undefined)
    throw new MiningError('BAD_INDEX', `${name} is taken, but the store has no origin for it`)
  return origin
}
