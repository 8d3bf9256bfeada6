import type { Outpoint } from '../../../backend/src/protocol/outpoint.js'
import { MADE_UP_PAYER } from '../../mining/made-up-mint.js'
import { mineName } from '../../mining/mine-name.js'
import { MiningError } from '../../mining/mining-error.js'
import type { Network } from './network.js'

/**
 * Mines what is missing of a name, for nobody to own. One that is taken is left as it is, whoever took it: it may have
 * been a start before this one.
 *
 * @returns The origin of the name.
 * @throws what {@link mineName} throws, but for `TAKEN`.
 */
export async function ensureName(network: Network, name: string): Promise<Outpoint> {
  const { deployment, graph, index, progress, signal, workers } = network
  try {
    await mineName({
      name,
      deployment,
      index,
      ...MADE_UP_PAYER,
      // A network of one's own has no headers.
      chainTracker: 'scripts only',
      signal,
      onEvent: (event) => progress.tell(event),
      ...(workers !== undefined && { workers }),
    })
  } catch (error) {
    if (!(error instanceof MiningError && error.code === 'TAKEN')) throw error
  }
  const origin = await graph.names.originOf(name)
  if (origin === undefined)
    throw new MiningError('BAD_INDEX', `the store has ${name} taken, but no origin of it`)
  return origin
}
