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
import { ReorgMonitor } from '../chain/tracker/reorg-monitor.js'
import type { Config } from './config/config.js'
import { FollowedTree } from './followed-tree.js'
import type { Job, Jobs } from './store/open-facts.js'
import { isDeployedHere } from './store/pinned-genesis.js'
import { CatchUpLog } from './telemetry/catch-up-log.js'
import { type ChainParts, catchUpProgress } from './telemetry/chain-status.js'
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

/** The parts of a node needed to follow the chain; the node may be our own server, or over the index of another host. */
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

export interface FollowedChainOptions {
  node: FollowingNode
  logger: Logger
  /** Submits transactions; by default in this thread. */
  submit?: Submit | undefined
  hasPeers?: boolean
}

/**
 * A node's knowledge of the chain: the follower with its sources, the check of stored proofs, how far the tree was followed,
 * and the status of all these.
 */
export class FollowedChain {
  /** Undefined if there is no tree to follow, or no source. */
  readonly following: Following | undefined
  /** Undefined if proofs are not checked. */
  readonly reorgMonitor: ReorgMonitor | undefined
  readonly progress: FollowedTree
  readonly parts: ChainParts
  private readonly log: CatchUpLog

  constructor(private readonly options: FollowedChainOptions) {
    const { node, logger, hasPeers = false } = options
    const { graph, config } = node
    const headers = config.minesBlocks
      ? { status: () => ({ height: graph.blocks.lastHeight() }) }
      : node.overlay.proofs.headers
    const isMine = (): boolean => this.isMine('follow')
    this.reorgMonitor = reorgMonitorOf(node, logger)
    const following = openFollowing(options, {
      isMine,
      onSwept: (tip) => {
        const scope = following?.sources.scope
        if (scope !== undefined) this.progress.completed(scope === 'chain' ? tip : undefined)
      },
    })
    this.following = following
    const { follower, ancestors, sources } = following ?? {}
    const ofHolder = <Status>(part: { status(): Status } | undefined) =>
      part && { status: () => (isMine() ? part.status() : undefined) }
    const parts: ChainParts = {
      ...{ headers, follower: ofHolder(follower), ancestors: ofHolder(ancestors), sources },
    }
    this.parts = parts
    const follows = following !== undefined || (hasPeers && node.config.deployment !== undefined)
    this.progress = new FollowedTree({
      ...{ settings: node.graph.settings, isShared: node.isShared, logger },
      isMine: () => this.isMine(following === undefined ? 'sync' : 'follow'),
      follower: follows
        ? { progress: () => catchUpProgress(parts), answeredAt: () => sources?.answeredAt }
        : undefined,
    })
    this.log = new CatchUpLog({ parts, logger })
  }

  /** Whether this process does a job, if several share the log. */
  isMine(job: Job): boolean {
    return this.options.node.jobs?.isMine(job) ?? true
  }

  async open(): Promise<void> {
    await this.progress.open({ isOwn: await isDeployedHere(this.options.node.graph) })
  }

  start(): void {
    this.reorgMonitor?.start()
    const { follower, ancestors, feed } = this.following ?? {}
    follower?.start()
    ancestors?.start()
    feed?.start()
    this.options.node.overlay.proofs.headers?.onTip((tip) => {
      follower?.onBlock(tip)
      feed?.onBlock(tip)
    })
    this.log.start()
  }

  /** Resolves when the store is no longer in use. */
  async stop(): Promise<void> {
    this.log.stop()
    await this.reorgMonitor?.stop()
    const { follower, ancestors, sightings, feed, sources } = this.following ?? {}
    const stopped = [follower?.stop(), ancestors?.stop(), sightings?.stop(), feed?.stop()]
    // Aborts the requests that those parts wait for.
    sources?.close()
    await Promise.all(stopped)
    await this.progress.close()
  }
}

/** The parts that follow the chain. */
interface Following {
  sources: ChainSources
  follower: Follower
  /** Fetches missing ancestors. */
  ancestors: AncestorsWorker
  sightings: Sightings
  /** Undefined without a subscription. */
  feed: Feed | undefined
}

/** Prepares to follow the chain; undefined if there is no tree to follow or no chain source. */
function openFollowing(
  { node, logger, submit }: FollowedChainOptions,
  { isMine, onSwept }: { isMine: IsMine; onSwept(tip: ChainTip | undefined): void },
): Following | undefined {
  const { config, graph, overlay } = node
  const { deployment, chainSources: addresses, chainSourceRate: rate, maxBodyBytes: maxBytes } = config
  if (deployment === undefined || addresses.length === 0) return undefined
  const { maxBeefTransactions: maxTransactions, maxAncestors, maxAncestorBytes } = config.limits
  const { headers } = overlay.proofs
  const limits = { maxTransactions, maxBytes }
  const sources = openSources({
    ...{ addresses, rate, logger },
    ...(headers && { verdict: (block) => headers.verdict(block) }),
  })
  const sightings = new Sightings({
    ...{ store: node.store, source: sources, logger },
    record: (records) => recordSightings({ graph, overlay }, records),
  })
  const admit = ({ txid, beef }: { txid: string; beef: Uint8Array }): Promise<Admission> =>
    admitBeef(
      { graph, overlay },
      {
        ...{ txid, beef: () => beef, ahead: AHEAD },
        ...(submit && { submit: askingBeforeLoss(submit, sightings) }),
      },
    )
  const follower = new Follower({
    // Without the cache, which is for readers: a sweep reads everything once.
    node: { genesis: deployment.genesis, store: node.store, admit },
    source: sources,
    onSeen: (txid) => sightings.seen(txid),
    onUnproven: (txid) => sightings.notice([txid]),
    ordinals: config.followOrdinals,
    parallel: PARALLEL,
    limits,
    maxUnproven: MAX_UNPROVEN,
    pollInterval: config.followPollMs,
    ...{ logger, onSwept, isMine },
  })
  const ancestors = new AncestorsWorker({
    ...{ queue: node.ancestors, store: node.store, source: sources, admit, limits, logger, isMine },
    perOrdinal: { maxTransactions: maxAncestors, maxBytes: maxAncestorBytes },
  })
  return {
    sources,
    sightings,
    follower,
    ancestors,
    feed: feedOf({ sources, follower, node, logger, isMine }),
  }
}

function feedOf(options: {
  sources: ChainSources
  follower: Follower
  node: FollowingNode
  logger: Logger
  isMine: IsMine
}): Feed | undefined {
  const { sources, follower, node, logger, isMine } = options
  const { config, graph, overlay } = node
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

function reorgMonitorOf({ config, graph, overlay }: FollowingNode, logger: Logger): ReorgMonitor | undefined {
  const { engine, proofs } = overlay
  const { reorgDepth, headersPollMs: pollInterval } = config
  const { headers } = proofs
  if (headers === undefined) return undefined
  const runLocked = engine.writes.run.bind(engine.writes)
  return new ReorgMonitor({ headers, proofs, graph, runLocked, reorgDepth, pollInterval, logger })
}
