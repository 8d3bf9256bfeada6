import type { Logger } from 'pino'
import { ChainTrackerError } from '../../../backend/src/graph/errors.js'
import { TOPICS } from '../../../backend/src/protocol/profile.js'
import type { FactStore } from '../../../backend/src/read/fact-store.js'
import { BackgroundJob, type IsMine, untilMine } from '../../chain/sources/background.js'
import { AnswerError } from '../../gateway/http/errors.js'
import type { Config } from '../config/config.js'
import type { Overlay } from '../writer/overlay.js'
import { Peer, PeerError } from './peer.js'
import { type SyncResult, TopicSync } from './topic-sync.js'

/**
 * Prepares to sync in rounds with the peers in the settings of a node (`docs/follow.md`), each peer independently, so that none waits
 * for another.
 *
 * @param options.onRound Called after each round that was not interrupted.
 * @param options.isMine Whether this process syncs; by default, it always does.
 */
export function openPeersSync(options: {
  config: Config
  graph: FactStore
  overlay: Pick<Overlay, 'engine' | 'emit'>
  logger: Logger
  onRound(topic: string, result: SyncResult): Promise<void>
  isMine?: IsMine | undefined
}): BackgroundJob[] {
  const { config, graph, overlay, logger, onRound, isMine } = options
  const { syncPeers, syncIntervalMs: interval, limits, deployment, maxBodyBytes } = config
  const { engine, emit } = overlay
  // Without a tree every name would be skipped, and not requested again once there is one.
  const topics = deployment === undefined ? [TOPICS.ordinals] : [TOPICS.names, TOPICS.ordinals]
  const bounds = {
    maxNodes: limits.maxSyncTransactions,
    maxBytes: limits.maxAncestorBytes,
    graphTimeout: limits.syncGraphTimeout,
  }
  return syncPeers.map((url) => {
    const peer = new Peer({ url, timeout: limits.syncTimeout, maxBytes: maxBodyBytes })
    const options = { peer, url, graph, engine, emit, limits: bounds, logger }
    const syncs = topics.map((topic) => new TopicSync({ ...options, topic }))
    return new BackgroundJob(async (signal) => {
      for (const sync of syncs) {
        await untilMine(isMine, signal)
        try {
          await onRound(sync.topic, await sync.round(signal))
        } catch (err) {
          if (signal.aborted) return undefined
          // Such an error ends a round, and may be gone by the next one.
          const isTransient =
            err instanceof PeerError ||
            err instanceof ChainTrackerError ||
            (err instanceof AnswerError && err.code === 'NOT_READY')
          logger[isTransient ? 'warn' : 'error'](
            { err, peer: url },
            'a sync was interrupted; the next one continues there',
          )
        }
      }
      return interval || undefined
    })
  })
}
