import type { Logger } from 'pino'
import { ReorgMonitor } from '../chain/tracker/reorg-monitor.js'
import { FollowedTree } from './followed-tree.js'
import { type Following, type FollowingNode, openFollowing } from './following.js'
import type { Job } from './store/open-facts.js'
import { isDeployedHere } from './store/pinned-genesis.js'
import { CatchUpLog } from './telemetry/catch-up-log.js'
import { type ChainParts, catchUpProgress } from './telemetry/chain-status.js'
import type { Submit } from './writer/submission-queue.js'

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
    const { node, logger, submit, hasPeers = false } = options
    const { graph, config } = node
    const headers = config.minesBlocks
      ? { status: () => ({ height: graph.blocks.lastHeight() }) }
      : node.overlay.proofs.headers
    const isMine = (): boolean => this.isMine('follow')
    this.reorgMonitor = reorgMonitorOf(node, logger)
    const following = openFollowing({
      ...{ node, logger, submit, isMine },
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
    const { following } = this
    this.reorgMonitor?.start()
    if (following !== undefined) {
      following.start()
      this.options.node.overlay.proofs.headers?.onTip((tip) => following.onTip(tip))
    }
    this.log.start()
  }

  /** Resolves when the store is no longer in use. */
  async stop(): Promise<void> {
    this.log.stop()
    await this.reorgMonitor?.stop()
    await this.following?.stop()
    await this.progress.close()
  }
}

function reorgMonitorOf({ config, graph, overlay }: FollowingNode, logger: Logger): ReorgMonitor | undefined {
  const { engine, proofs } = overlay
  const { reorgDepth, headersPollMs: pollInterval } = config
  const { headers } = proofs
  if (headers === undefined) return undefined
  const runLocked = engine.writes.run.bind(engine.writes)
  return new ReorgMonitor({ headers, proofs, graph, runLocked, reorgDepth, pollInterval, logger })
}
