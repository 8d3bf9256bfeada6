import type { Logger } from 'pino'
import type { AncestorQueue } from '../../backend/src/graph/ancestor-queue.js'
import type { FactStore } from '../../backend/src/read/fact-store.js'
import type { Admission } from '../chain/ancestors/ancestors.js'
import { AncestorsWorker } from '../chain/ancestors/ancestors-worker.js'
import { Feed } from '../chain/follow/feed.js'
import { Follower } from '../chain/follow/follower.js'
import { Sightings } from '../chain/follow/sightings.js'
import type { IsMine } from '../chain/sources/background.js'
import type { ChainTip } from '../chain/sources/chain-source.js'
import type { ChainSources } from '../chain/sources/chain-sources.js'
import { openSources } from '../chain/sources/open-sources.js'
import type { Config } from './config/config.js'
import type { Jobs } from './store/open-facts.js'
import { admitBeef } from './writer/admit.js'
import type { Overlay } from './writer/overlay.js'
import { askingBeforeLoss, recordSightings } from './writer/sighted-submissions.js'
import type { Submit } from './writer/submission-queue.js'

/** How many coins are asked about at once: the rate of the sources is the actual limit. */
const PARALLEL = 8
/** The most unmined transactions that are admitted between two blocks. */
const MAX_UNPROVEN = 100
/** The follower's submissions wait at the write lock as if this many others were ahead of them: it has time. */
const AHEAD = 1000

/**
 * The parts of a node needed to follow the chain; the node may be our own server, or over the index of another host.
 */
export interface FollowingNode {
  /** The settings, with the tree that the store holds. */
  config: Config
  graph: FactStore
  /** The same store as `graph`, without caches. */
  store: FactStore
  ancestors: AncestorQueue
  overlay: Pick<Overlay, 'engine' | 'proofs' | 'emit' | 'onEvent'>
  isShared: boolean
  jobs: Pick<Jobs, 'isMine'> | undefined
}

export interface FollowingOptions {
  node: FollowingNode
  logger: Logger
  /** Submits transactions; by default in this thread. */
  submit?: Submit | undefined
  /** See `FollowerOptions`. */
  onSwept(tip: ChainTip | undefined): void
  /** Whether this process follows; by default, it always does. */
  isMine?: IsMine | undefined
}

/**
 * The parts that follow the chain: sources, follower, fetcher of missing ancestors, and a feed if there is a
 * subscription.
 */
export class Following {
  readonly sources: ChainSources
  readonly follower: Follower
  readonly ancestors: AncestorsWorker
  readonly sightings: Sightings
  readonly feed: Feed | undefined

  constructor(options: FollowingOptions, genesis: Follower['genesis']) {
    const { node, logger, submit, onSwept, isMine } = options
    const { config, graph, overlay } = node
    const { chainSources: addresses, chainSourceRate: rate, maxBodyBytes: maxBytes } = config
    const { maxBeefTransactions: maxTransactions, maxAncestors, maxAncestorBytes } = config.limits
    const admit = ({ txid, beef }: { txid: string; beef: Uint8Array }): Promise<Admission> =>
      admitBeef(
        { graph, overlay },
        {
          ...{ txid, beef: () => beef, ahead: AHEAD },
          ...(submit && { submit: askingBeforeLoss(submit, this.sightings) }),
        },
      )
    const { headers } = overlay.proofs
    const limits = { maxTransactions, maxBytes }
    this.sources = openSources({
      ...{ addresses, rate, logger },
      ...(headers && { verdict: (block) => headers.verdict(block) }),
    })
    this.sightings = new Sightings({
      ...{ store: node.store, source: this.sources, logger },
      record: (records) => recordSightings({ graph, overlay }, records),
    })
    const { sightings } = this
    this.follower = new Follower({
      node: {
        genesis,
        // Without the cache, which is for readers: a sweep reads everything once.
        store: node.store,
        admit,
      },
      source: this.sources,
      onSeen: (txid) => sightings.seen(txid),
      onUnproven: (txid) => sightings.notice([txid]),
      ordinals: config.followOrdinals,
      parallel: PARALLEL,
      limits,
      maxUnproven: MAX_UNPROVEN,
      pollInterval: config.followPollMs,
      ...{ logger, onSwept, isMine },
    })
    this.ancestors = new AncestorsWorker({
      ...{ queue: node.ancestors, store: node.store, source: this.sources, admit, limits, logger, isMine },
      perOrdinal: { maxTransactions: maxAncestors, maxBytes: maxAncestorBytes },
    })
    this.feed = this.feedOf(options)
  }

  start(): void {
    this.follower.start()
    this.ancestors.start()
    this.feed?.start()
  }

  onTip(tip: ChainTip): void {
    this.follower.onBlock(tip)
    this.feed?.onBlock(tip)
  }

  /** Resolves when the store is no longer in use. */
  async stop(): Promise<void> {
    const stopped = [this.follower.stop(), this.ancestors.stop(), this.sightings.stop(), this.feed?.stop()]
    // Aborts the requests that those parts wait for.
    this.sources.close()
    await Promise.all(stopped)
  }

  private feedOf({ node, logger, isMine }: FollowingOptions): Feed | undefined {
    const { config, graph, overlay } = node
    const { sources, follower } = this
    const { junglebus } = sources
    const { junglebusSubscription: subscription, maxBodyBytes: maxBytes } = config
    const { headers } = overlay.proofs
    if (subscription === undefined || junglebus === undefined) return undefined
    // Without headers, JungleBus provides the height of the chain.
    const tip = () => headers?.currentHeight() ?? junglebus.height()
    const { txid } = follower.genesis
    return new Feed({
      ...{ junglebus, subscription, source: sources, settings: graph.settings, maxBytes, logger, isMine },
      interval: config.followPollMs,
      tip,
      async firstHeight() {
        const genesis = await sources.transaction(txid, { maxBytes })
        return genesis?.proof?.height ?? (await tip())
      },
      isKnown: async (each) => graph.transactions.heightOf(each) !== undefined,
      onTransaction: (record) => follower.take(record),
    })
  }
}

/** Prepares to follow the chain; undefined if there is no tree to follow or no chain source. */
export function openFollowing(options: FollowingOptions): Following | undefined {
  const { deployment, chainSources } = options.node.config
  if (deployment === undefined || chainSources.length === 0) return undefined
  return new Following(options, deployment.genesis)
}
