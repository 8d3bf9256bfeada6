import { setTimeout } from 'node:timers/promises'
import type { Logger } from 'pino'
import { ChainTrackerError } from '../../../backend/src/graph/errors.js'
import { TOPICS } from '../../../backend/src/protocol/profile.js'
import type { FactStore } from '../../../backend/src/read/fact-store.js'
import { type IsMine, untilMine } from '../../chain/ancestors/is-mine.js'
import { AnswerError } from '../../gateway/http/errors.js'
import type { Config } from '../config/config.js'
import type { Overlay } from '../writer/overlay.js'
import { Peer, PeerError } from './peer.js'
import { type SyncResult, TopicSync } from './topic-sync.js'

export interface PeersSyncOptions {
  /** For each URL of a peer: its topics, in the order in which they are synced. */
  peers: Map<string, TopicSync[]>
  /** Milliseconds from the end of one round to the next; 0: only one round. */
  interval: number
  /** Called after each round that was not interrupted. */
  onRound(topic: string, result: SyncResult): Promise<void>
  /** Whether this process syncs; by default, it always does. */
  isMine?: IsMine | undefined
  logger: Logger
}

/** Syncs with peers in rounds (`docs/follow.md`), each peer independently, so that none waits for another. */
export class PeersSync {
  private readonly stopping = new AbortController()
  private polling: Promise<unknown> | undefined

  constructor(private readonly options: PeersSyncOptions) {}

  start(): void {
    this.polling = Promise.all([...this.options.peers].map(([url, topics]) => this.poll(url, topics)))
  }

  /** Stops; resolves when the store is no longer in use. */
  async stop(): Promise<void> {
    this.stopping.abort(new PeerError('AWAY', 'the node is stopping'))
    await this.polling
  }

  private async poll(peer: string, topics: TopicSync[]): Promise<void> {
    const { interval, logger, onRound, isMine } = this.options
    const { signal } = this.stopping
    while (!signal.aborted) {
      for (const topic of topics) {
        await untilMine(isMine, signal)
        try {
          await onRound(topic.topic, await topic.round(signal))
        } catch (err) {
          if (signal.aborted) return
          // Such an error ends a round, and may be gone by the next one.
          const isTransient =
            err instanceof PeerError ||
            err instanceof ChainTrackerError ||
            (err instanceof AnswerError && err.code === 'NOT_READY')
          logger[isTransient ? 'warn' : 'error'](
            { err, peer },
            'a sync was interrupted; the next one continues there',
          )
        }
      }
      if (interval === 0) return
      await setTimeout(interval, undefined, { signal, ref: false }).catch(() => {})
    }
  }
}

export function openPeersSync({
  config,
  graph,
  overlay,
  logger,
  onRound,
  isMine,
}: {
  config: Config
  graph: FactStore
  overlay: Pick<Overlay, 'engine' | 'emit'>
  logger: Logger
  onRound: PeersSyncOptions['onRound']
  isMine?: IsMine | undefined
}): PeersSync | undefined {
  const { syncPeers, syncIntervalMs: interval, limits, deployment, maxBodyBytes } = config
  if (syncPeers.length === 0) return undefined
  const { engine, emit } = overlay
  // Without a tree every name would be skipped, and not requested again once there is one.
  const topics = deployment === undefined ? [TOPICS.ordinals] : [TOPICS.names, TOPICS.ordinals]
  const bounds = {
    maxNodes: limits.maxSyncTransactions,
    maxBytes: limits.maxAncestorBytes,
    graphTimeout: limits.syncGraphTimeout,
  }
  const peers = syncPeers.map((url): [string, TopicSync[]] => {
    const peer = new Peer({ url, timeout: limits.syncTimeout, maxBytes: maxBodyBytes })
    const syncs = topics.map(
      (topic) => new TopicSync({ peer, url, topic, graph, engine, emit, limits: bounds, logger }),
    )
    return [url, syncs]
  })
  return new PeersSync({ peers: new Map(peers), interval, logger, onRound, isMine })
}
