import { pino } from 'pino'
import { pinnedTree } from '../../backend/src/graph/pinned-tree.js'
import type { HostDatabase } from '../../backend/src/host/host-database.js'
import { type HostedIndex, hostedIndex } from '../../backend/src/host/hosted-index.js'
import { messageOf } from '../../backend/src/protocol/coded-error.js'
import type { Deployment } from '../../backend/src/protocol/mint.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import { hostRules, OtherTreeError } from '../../backend/src/read/host-index.js'
import { BackgroundJob } from '../chain/sources/background.js'
import type { BlockHeaders } from '../chain/tracker/chain-tracker.js'
import { type Config, ConfigError, readConfig } from '../server/config/config.js'
import { LIMITS } from '../server/config/limits.js'
import { FollowedChain } from '../server/followed-chain.js'
import { FollowedTree } from '../server/followed-tree.js'
import { requireTracker, trackerOf } from '../server/store/pinned-genesis.js'
import { chainStatus } from '../server/telemetry/chain-status.js'
import { createOverlay } from '../server/writer/overlay.js'
import { EngineCatchUp } from './engine-catch-up.js'
import type { FollowerOptions, FollowerStatus, HostEngine, HostFollower } from './follower-options.js'
import { connected } from './stores-of.js'

/** The pause before another attempt to start, in milliseconds. */
const AGAIN = 1000

/**
 * Follows the chain in the host of an engine, as our own server does (`docs/follow.md`): a host with an empty database gets all names
 * that exist. What the follower finds enters the plugin's index, and the host's engine admits it. If several processes share the
 * database, one of them follows.
 *
 * Call it once the services of the host and its engine are configured.
 *
 * @param database The database of the services: the host's `knex` or `mongoDb`.
 * @throws TypeError without a database, or without `ls_names`; ConfigError for an invalid setting. Later errors are written to
 * standard error, or passed to `onFailure` of the services, and are in `status()`.
 */
export function attachFollower(
  database: HostDatabase | undefined,
  { settings = process.env, engine, chainTracker, logger = pino({ name: 'minetree' }) }: FollowerOptions = {},
): HostFollower {
  const connection = connected(database, 'attachFollower')
  const { deployment } = hostRules(hostedIndex(connection).store)
  if (deployment === undefined)
    throw new TypeError('attachFollower found no tree to follow: configure ls_names over this database first')
  const own = chainTracker === 'scripts only' ? { CHAIN_TRACKER: 'scripts-only' } : {}
  const givenTracker = typeof chainTracker === 'object' ? chainTracker : undefined
  const config = { ...followerConfig({ ...settings, ...own }, deployment), givenTracker }
  const tracker = trackerOf(config)
  const index = hostedIndex(connection, { tracker })
  index.users++
  const follower = new AttachedFollower({ index, config, engine, tracker, logger: logger as never })
  follower.start()
  return follower
}

interface AttachedOptions {
  index: HostedIndex
  config: Config
  engine: HostEngine | undefined
  /** The chain tracker that decides which proofs count. */
  tracker: string
  logger: Parameters<typeof createOverlay>[0]['logger']
}

class AttachedFollower implements HostFollower {
  readonly asksNetwork = true as const
  readonly progress: HostFollower['progress']
  readonly ancestors: HostFollower['ancestors']
  private readonly opening = new BackgroundJob((signal) => this.attempt(signal))
  private followed: FollowedChain | undefined
  /** The progress of other processes, when this one cannot follow. */
  private others: FollowedTree | undefined
  private headers: BlockHeaders | undefined
  private catchUp: EngineCatchUp | undefined
  private reason: string | undefined
  private hasFailed = false

  constructor(private readonly options: AttachedOptions) {
    const now = (): HostFollower['progress'] | undefined => this.followed?.progress ?? this.others
    this.progress = {
      get asOf() {
        return now()?.asOf
      },
      get isCatchingUp() {
        // Before the progress is known, anything that is missing here may exist.
        return now()?.isCatchingUp ?? true
      },
      get isIncomplete() {
        return now()?.isIncomplete ?? true
      },
      progress: () => now()?.progress() ?? {},
    }
    this.ancestors = options.index.store.ancestors
  }

  start(): void {
    this.opening.start()
  }

  status(): FollowerStatus {
    const { followed, reason } = this
    const chained = followed === undefined ? {} : chainStatus(followed.parts)
    return { state: this.state, ...(reason !== undefined && { reason }), ...chained }
  }

  chain(): { height?: number; lag?: number } {
    const { height, lag } = this.status()
    return { ...(height !== undefined && { height }), ...(lag !== undefined && { lag }) }
  }

  async stop(): Promise<void> {
    if (this.opening.signal.aborted) return
    await this.opening.stop()
    await this.end()
    const { index } = this.options
    index.seekJobs([])
    await index.close()
  }

  private get state(): FollowerStatus['state'] {
    if (this.opening.signal.aborted) return 'stopped'
    if (this.hasFailed) return 'failed'
    if (this.followed === undefined) return 'starting'
    return this.options.index.isMine('follow') ? 'following' : 'waiting'
  }

  private async attempt(signal: AbortSignal): Promise<number | undefined> {
    try {
      await (this.hasFailed ? this.watch() : this.open())
      return undefined
    } catch (error) {
      await this.end()
      if (signal.aborted) return undefined
      this.reason = messageOf(error)
      // Neither error goes away while the process runs.
      this.hasFailed = error instanceof ConfigError || error instanceof OtherTreeError
      this.options.index.report(error)
      // The progress of others on a different tree means nothing here.
      if (error instanceof OtherTreeError) return undefined
      return this.hasFailed ? 0 : AGAIN
    }
  }

  private async open(): Promise<void> {
    const { index, engine, tracker, logger } = this.options
    await index.ready()
    const { store } = index
    await requireTracker(store.settings, { tracker, place: 'this database' })
    const config = { ...this.options.config, deployment: await pinnedTree(store.settings) }
    const overlay = createOverlay({ config, graph: store, logger })
    this.headers = overlay.proofs.headers
    hostRules(store).chainTracker ??= this.headers
    const isMine = (job: string): boolean => index.isMine(job)
    const chain = new FollowedChain({
      node: {
        ...{ config, graph: store, store, ancestors: store.ancestors, overlay },
        ...{ isShared: true, jobs: { isMine } },
      },
      logger,
    })
    await chain.open()
    this.followed = chain
    this.reason = undefined
    if (engine !== undefined)
      this.catchUp = new EngineCatchUp({
        ...{ engine, graph: store, tables: () => index.openEngine() },
        isMine: () => isMine(ENGINE),
        onFailure: (error) => index.report(error),
      })
    index.seekJobs(['follow', ...(engine === undefined ? [] : [ENGINE])])
    chain.start()
    this.catchUp?.start()
  }

  /** Answers with the progress of other processes, as a process does that is waiting to follow. */
  private async watch(): Promise<void> {
    const { index, logger } = this.options
    const others = new FollowedTree({
      ...{ settings: index.store.settings, isShared: true, isMine: () => false, logger },
      follower: { progress: () => ({}), answeredAt: () => undefined },
    })
    await others.open()
    this.others = others
  }

  private async end(): Promise<void> {
    await this.catchUp?.stop()
    await this.followed?.stop()
    const rules = hostRules(this.options.index.store)
    if (rules.chainTracker === this.headers) delete rules.chainTracker
    await this.headers?.close()
    await this.others?.close()
    this.followed = undefined
    this.others = undefined
  }
}

/** The job of passing to the engine what it lacks; the processes of a host share its tables. */
const ENGINE = 'engine'

/** The settings of our server that say how a host follows the chain. */
const SETTINGS = [
  ...['CHAIN_SOURCES', 'CHAIN_SOURCE_RATE', 'JUNGLEBUS_SUBSCRIPTION', 'FOLLOW_ORDINALS', 'FOLLOW_POLL_MS'],
  ...[
    'CHAIN_TRACKER',
    'CHAIN_TRACKER_TIMEOUT_MS',
    'HEADERS_SOURCES',
    'HEADERS_CHECKPOINT',
    'HEADERS_POLL_MS',
  ],
  ...['REORG_DEPTH', 'NETWORK', 'MAX_BODY_BYTES'],
  ...Object.values(LIMITS).map(({ setting }) => setting),
]

/**
 * Reads the settings of a follower. Others, such as those of the host's database, are ignored.
 *
 * @throws ConfigError that names the first invalid one.
 */
function followerConfig(
  settings: Readonly<Record<string, string | undefined>>,
  deployment: Deployment,
): Config {
  const set = Object.fromEntries(SETTINGS.map((name) => [name, settings[name]]))
  const tree = { PROFILE: 'mainnet', GENESIS: formatOutpoint(deployment.genesis) }
  const config = readConfig({ ...set, ...tree })
  if (config.chainSources.length === 0)
    throw new ConfigError(
      'CHAIN_SOURCES: must name the services to follow the chain by, such as junglebus (docs/follow.md)',
    )
  return { ...config, deployment }
}
