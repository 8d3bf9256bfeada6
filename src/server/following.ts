import type { Logger } from 'pino'
import type { ChainSources } from '../follow/chain-sources.js'
import { Follower } from '../follow/follower.js'
import { openSources } from '../follow/open-sources.js'
import type { Node } from './node.js'
import { admitBeef } from './submission/admit.js'
import type { Submit } from './submission/submission-queue.js'

/** How many coins are asked about at once: the rate of the sources is the limit. */
const PARALLEL = 8
/** How many unmined transactions are admitted between two blocks. */
const MAX_UNPROVEN = 100
/** A follower has time: its submissions wait at the write lock as if so many others were ahead of them. */
const AHEAD = 1000

/** How a node follows the chain. */
export interface Following {
  sources: ChainSources
  follower: Follower
  /** Resolves when it no longer uses the store. */
  stop(): Promise<void>
}

/**
 * Prepares to follow the chain; undefined if there is no tree to follow or no chain source.
 *
 * @param options.submit Where transactions are submitted; by default in this thread.
 */
export function openFollowing({
  node,
  logger,
  submit,
}: {
  node: Node
  logger: Logger
  submit?: Submit | undefined
}): Following | undefined {
  const { config, graph, overlay } = node
  const { deployment, chainSources: addresses, chainSourceRate: rate, limits } = config
  if (deployment === undefined || addresses.length === 0) return undefined
  const sources = openSources({ addresses, rate, parallel: PARALLEL, logger })
  const follower = new Follower({
    node: {
      genesis: deployment.genesis,
      store: graph,
      // Without waiting for the backlog, which strangers can keep busy: the sweep comes by again.
      admit: ({ txid, beef }) =>
        admitBeef({ graph, overlay }, { txid, beef: () => beef, ahead: AHEAD, ...(submit && { submit }) }),
    },
    source: sources,
    ordinals: config.followOrdinals,
    parallel: PARALLEL,
    limits: { maxTransactions: limits.maxBeefTransactions, maxBytes: config.maxBodyBytes },
    maxUnproven: MAX_UNPROVEN,
    pollInterval: config.followPollMs,
    logger,
  })
  return {
    ...{ sources, follower },
    async stop() {
      const stopped = follower.stop()
      // Aborts the requests that it waits for.
      await sources.close()
      await stopped
    },
  }
}
