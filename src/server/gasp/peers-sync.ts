import { setTimeout } from 'node:timers/promises'
import type { Logger } from 'pino'
import { TOPICS } from '../../../backend/src/protocol/profile.js'
import { NotReadyError } from '../../gateway/http/errors.js'
import type { Node } from '../node.js'
import { ChainTrackerError } from '../submission/submission-errors.js'
import { Peer } from './peer.js'
import { PeerAwayError } from './sync-errors.js'
import { TopicSync } from './topic-sync.js'

/** What ended a round is looked at again in the next one. */
const PASSING = [PeerAwayError, ChainTrackerError, NotReadyError]

export interface PeersSyncOptions {
  /** For each peer, by where it is, its topics in the order in which they are brought. */
  peers: Map<string, TopicSync[]>
  /** Milliseconds from the end of one round to the next; 0: none but the first. */
  interval: number
  logger: Logger
}

/** Brings what peers have, in rounds (`docs/sync.md`): each peer by itself, so that none waits for another. */
export class PeersSync {
  private readonly stopping = new AbortController()
  private polling: Promise<unknown> | undefined

  constructor(private readonly options: PeersSyncOptions) {}

  start(): void {
    this.polling = Promise.all([...this.options.peers].map(([url, topics]) => this.poll(url, topics)))
  }

  /** Ends what is under way, and waits until the store is left alone. */
  async stop(): Promise<void> {
    this.stopping.abort(new PeerAwayError('the node is stopping'))
    await this.polling
  }

  private async poll(peer: string, topics: TopicSync[]): Promise<void> {
    const { interval, logger } = this.options
    const { signal } = this.stopping
    while (!signal.aborted) {
      for (const topic of topics) {
        try {
          await topic.round(signal)
        } catch (err) {
          if (signal.aborted) return
          const isPassing = PASSING.some((kind) => err instanceof kind)
          logger[isPassing ? 'warn' : 'error'](
            { err, peer },
            'a sync was interrupted; the next one will continue it',
          )
        }
      }
      if (interval === 0) return
      // Aborted, it is done; the loop sees why.
      await setTimeout(interval, undefined, { signal, ref: false }).catch(() => {})
    }
  }
}

/** The sync of a node with the peers that its settings name; undefined where they name none. */
export function openPeersSync({ config, graph, overlay }: Node, logger: Logger): PeersSync | undefined {
  const { syncPeers, syncInterval, limits, deployment, maxBodyBytes } = config
  if (syncPeers.length === 0) return undefined
  const { engine, proofs, tell } = overlay
  // Without a tree every name would be passed over, and not be asked for again when there is one.
  const topics = deployment === undefined ? [TOPICS.ordinals] : [TOPICS.names, TOPICS.ordinals]
  const bounds = {
    maxNodes: limits.maxSyncTransactions,
    maxBytes: limits.maxSyncBytes,
    graphTimeout: limits.syncGraphTimeout,
  }
  const peers = syncPeers.map((url): [string, TopicSync[]] => {
    const peer = new Peer({ url, timeout: limits.syncTimeout, maxBytes: maxBodyBytes })
    const syncs = topics.map(
      (topic) => new TopicSync({ peer, url, topic, graph, engine, proofs, tell, limits: bounds, logger }),
    )
    return [url, syncs]
  })
  return new PeersSync({ peers: new Map(peers), interval: syncInterval, logger })
}
