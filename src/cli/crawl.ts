import type { Logger } from 'pino'
import { Follower } from '../chain/follow/follower.js'
import type { ChainSources } from '../chain/sources/chain-sources.js'
import { SourceAddressError } from '../chain/sources/errors.js'
import { openSources } from '../chain/sources/open-sources.js'
import { parseSources, type SourceAddress } from '../chain/sources/source-address.js'
import type { Config } from '../server/config/config.js'
import { StartError } from '../server/config/errors.js'
import { recordFollowed } from '../server/followed-tree.js'
import { type Node, openNode } from '../server/node.js'
import { escapeControlChars } from '../server/telemetry/public-text.js'
import { admitBeef } from '../server/writer/admit.js'
import { CommandError, usageError } from './command.js'
import { serviceStatus } from './follow-progress.js'
import type { CommandOutput } from './output.js'
import { whenReady } from './ready-node.js'

export interface CrawlCommand {
  config: Config
  logger: Logger
  /** As `CHAIN_SOURCES`, which is the default. */
  source?: string
  parallel: number
  namesOnly: boolean
  /** The number of transactions after which to stop; the default depends on whether proofs are checked. */
  most?: number
  /** How many unconfirmed transactions to follow. */
  maxUnproven: number
  /** The number of seconds after which to stop. */
  maxTime: number
  /** As in `openNode`. */
  writerThread?: URL | undefined
  signal: AbortSignal
  output: CommandOutput
}

/** The default limits: a source whose proofs are not checked can invent any number of transactions. */
const DEFAULT_MOST = { checked: 1_000_000, unchecked: 1000 }

/** How many failures are listed: a lying source lies often. */
const MAX_LISTED = 20

/** Why a crawl stopped before its end. */
type Stopped = 'by signal' | 'at limit' | 'at time limit'

/**
 * Follows the chain once, to its end, and reports how far it got. If a service has the store open, reports how far the service
 * is.
 *
 * @throws CommandError if it did not reach the end of every branch: the same command continues from there. What `Follower.crawl`
 * throws; StartError if the store cannot be opened.
 */
export async function runCrawl(command: CrawlCommand): Promise<void> {
  const { config, logger, output } = command
  const addresses = sourcesOf(command)
  let node: Node
  try {
    node = await openNode({ config, logger, writerThread: command.writerThread })
  } catch (error) {
    if (!(error instanceof StartError) || !(await reportService(config, output))) throw error
    return
  }
  await whenReady(node, command, () => crawlInto(node, addresses, command))
}

async function crawlInto(node: Node, addresses: SourceAddress[], command: CrawlCommand): Promise<void> {
  const { config, logger, parallel, namesOnly, maxUnproven, maxTime, signal, output } = command
  const { deployment, limits } = node.config
  const most = command.most ?? DEFAULT_MOST[config.chainTracker === 'scripts-only' ? 'unchecked' : 'checked']
  if (deployment === undefined) throw usageError('there is no tree to follow: set PROFILE=mainnet or GENESIS')
  let stopped: Stopped | undefined
  let left = most
  const stop = (why: Stopped): void => {
    stopped ??= why
    void follower.stop()
    // Aborts the requests that the follower waits for.
    source.close()
  }
  const source = openSources({ addresses, rate: config.chainSourceRate, logger })
  const follower = new Follower({
    node: {
      genesis: deployment.genesis,
      store: node.graph,
      admit: async ({ txid, beef }) => {
        if (left-- > 0) return await admitBeef(node, { txid, beef: () => beef })
        stop('at limit')
        return { kind: 'known' }
      },
    },
    ...{ source, parallel, maxUnproven, logger },
    ordinals: namesOnly ? 'none' : config.followOrdinals,
    limits: { maxTransactions: limits.maxBeefTransactions, maxBytes: config.maxBodyBytes },
    pollInterval: 0,
  })
  const onSignal = (): void => stop('by signal')
  signal.addEventListener('abort', onSignal)
  const timer = setTimeout(() => stop('at time limit'), maxTime * 1000)
  const progress = () => {
    const { mints, transfers } = follower.report
    return { text: `${mints} mints, ${transfers} transfers; ${requestsTo(source)} requests` }
  }
  try {
    if (signal.aborted) onSignal()
    else {
      const { headers } = node.overlay.proofs
      await headers?.currentHeight()
      const tip = headers?.status()
      await output.during(progress, () => follower.crawl())
      const isComplete = stopped === undefined && follower.failures.length === 0
      if (isComplete && source.scope !== undefined)
        await recordFollowed(node.graph.settings, source.scope === 'chain' ? tip : undefined)
    }
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', onSignal)
    source.close()
    const result = { ...resultOf(follower, source), ...(stopped && { stopped }) }
    output.result(result, ...summary(result))
  }
  requireComplete({ stopped, failures: follower.failures }, { signal, most })
}

/** @throws CommandError (`usage`) */
function sourcesOf({ source, config }: CrawlCommand): SourceAddress[] {
  if (source === undefined && config.chainSources.length > 0) return config.chainSources
  try {
    const addresses = parseSources(source ?? 'junglebus')
    if (addresses.length > 0) return addresses
  } catch (error) {
    if (!(error instanceof SourceAddressError)) throw error
    throw usageError(`--source: ${error.message}`)
  }
  throw usageError('--source: name a source; none has nothing to follow')
}

type Result = ReturnType<typeof resultOf>

function requestsTo(source: ChainSources): number {
  return source.status().reduce((sum, { requests }) => sum + requests, 0)
}

function resultOf(follower: Follower, source: ChainSources) {
  const { mints, transfers, outputs, known, deadNodes, lost, unknown } = follower.report
  const { failures } = follower
  return {
    ...{ mints, transfers, outputs, known, deadNodes, lost, failures },
    unproven: follower.status().unproven,
    unknown: [...unknown],
    requests: requestsTo(source),
    failedRequests: source.status().reduce((sum, { failures }) => sum + failures, 0),
  }
}

function summary(result: Result): string[] {
  const { mints, transfers, outputs, known, deadNodes, lost, unproven, unknown, failures } = result
  return [
    `admitted ${mints} mints and ${transfers} transfers (${outputs} outputs), ${known} already known`,
    `requests: ${result.requests}, ${result.failedRequests} of them without a usable answer`,
    `nodes spent by transactions other than mints: ${deadNodes}; ordinals burnt, or moved to outputs that are not admitted: ${lost}`,
    `unconfirmed: ${unproven}`,
    `transactions needed to place ordinals, but unknown to the source: ${unknown.length}`,
    ...listed(unknown),
    `not followed: ${failures.length}`,
    ...listed(failures),
  ]
}

function listed(lines: string[]): string[] {
  const shown = lines.slice(0, MAX_LISTED).map((line) => `  ${escapeControlChars(line)}`)
  return lines.length > MAX_LISTED ? [...shown, `  and ${lines.length - MAX_LISTED} more`] : shown
}

function requireComplete(
  { stopped, failures }: { stopped: Stopped | undefined; failures: string[] },
  { signal, most }: { signal: AbortSignal; most: number },
): void {
  if (stopped === 'by signal') throw signal.reason
  if (stopped === 'at limit')
    throw new CommandError(`stopped at --most ${most} transactions: run the same command again to continue`)
  if (stopped === 'at time limit')
    throw new CommandError('stopped at --max-time: run the same command again to continue')
  if (failures.length > 0)
    throw new CommandError('some branches could not be followed: run the same command again to retry those')
}

/** Reports the progress of the service that has the store open. Returns whether there is one that follows the chain. */
async function reportService(config: Config, output: CommandOutput): Promise<boolean> {
  const service = serviceUrl(config)
  const status = await serviceStatus(service)
  if (status?.follow === undefined) return false
  const { follow, height: chainHeight, lag } = status
  const { state, mints, transfers, height, sweep, unproven, failures, lastError } = follow
  output.result(
    { service, chainHeight, lag, ...follow },
    `the service at ${service} follows the chain: ${state}`,
    `admitted since it started: ${mints} mints and ${transfers} transfers`,
    ...(height === undefined ? [] : [`everything was asked about up to height ${height}`]),
    ...(lag === undefined ? [] : [`blocks since then: ${lag}`]),
    `this sweep: ${sweep.asked} of about ${sweep.coins} coins`,
    `unconfirmed: ${unproven}`,
    `branches that could not be followed, counting every try: ${failures}`,
    ...(lastError === undefined ? [] : [`  last: ${escapeControlChars(lastError.message)}`]),
  )
  return true
}

/** Where a service with these settings listens, as seen from this machine. */
function serviceUrl({ host, port }: Config): string {
  if (host === '0.0.0.0') return `http://127.0.0.1:${port}`
  return host.includes(':') ? `http://[${host === '::' ? '::1' : host}]:${port}` : `http://${host}:${port}`
}
