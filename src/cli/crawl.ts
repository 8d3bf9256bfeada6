import type { Logger } from 'pino'
import type { ChainSources } from '../follow/chain-sources.js'
import type { CrawlReport } from '../follow/crawl.js'
import { Crawl } from '../follow/crawl.js'
import { SourceAddressError } from '../follow/errors.js'
import { openSources } from '../follow/open-sources.js'
import { parseSources, type SourceAddress } from '../follow/source-address.js'
import type { Config } from '../server/config/config.js'
import { openNode } from '../server/node.js'
import { escapeControlChars } from '../server/telemetry/escape-control-chars.js'
import { admitBeef } from './admit.js'
import { CommandError } from './command.js'
import type { CommandOutput } from './output.js'

export interface CrawlCommand {
  config: Config
  logger: Logger
  /** The sources, as in `CHAIN_SOURCES`; by default those that are set, or else the public JungleBus. */
  source?: string
  parallel: number
  namesOnly: boolean
  /** After how many transactions to stop; the default depends on whether proofs are checked. */
  most?: number
  /** How many unconfirmed transactions to follow. */
  maxUnproven: number
  /** After how many seconds to stop. */
  maxTime: number
  signal: AbortSignal
  output: CommandOutput
}

/** The default limits: a source whose proofs are not checked can invent any number of transactions. */
const DEFAULT_MOST = { checked: 1_000_000, unchecked: 1000 }

/** How often the progress line is updated, in milliseconds. */
const TICK = 100
/** How many failures are listed: a source that lies at all lies often. */
const MAX_LISTED = 20

/**
 * Fills the store from an index of the chain, and reports how far it got.
 *
 * @throws CommandError if it did not reach the end of every branch: the same command continues from there. What `Crawl.run`
 * throws; StartError if the store cannot be opened, for example because a server has it open.
 */
export async function runCrawl(command: CrawlCommand): Promise<void> {
  const { config, logger, parallel, namesOnly, maxUnproven, signal, output } = command
  const isUnchecked = config.chainTracker === 'scripts-only'
  const most = command.most ?? DEFAULT_MOST[isUnchecked ? 'unchecked' : 'checked']
  const addresses = sourcesOf(command)
  const node = await openNode({ config, logger })
  try {
    const { deployment, limits } = node.config
    if (deployment === undefined)
      throw new CommandError('there is no tree to follow: set PROFILE=mainnet or GENESIS', {
        exit: 'usage',
      })
    // Admission depends on the index.
    if (node.maintenance.status.state === 'rebuilding') await node.maintenance.run()
    const { maxBodyBytes } = config
    const source = openSources({ addresses, rate: config.chainSourceRate, parallel, signal })
    const crawl = new Crawl({
      node: {
        genesis: deployment.genesis,
        store: node.graph,
        admit: ({ txid, beef }) => admitBeef(node, { txid, beef: () => beef }),
      },
      ...{ source, parallel, most, maxUnproven, signal },
      maxTime: command.maxTime * 1000,
      names: !namesOnly,
      limits: { maxTransactions: limits.maxBeefTransactions, maxBytes: maxBodyBytes },
    })
    const progress = output.progress()
    const ticking = setInterval(() => {
      const { mints, transfers } = crawl.report
      const { requests, again } = source.asked
      progress.update(() => ({
        text: `${mints} mints, ${transfers} transfers; ${requests} requests, ${again} retries`,
      }))
    }, TICK)
    try {
      await crawl.run()
    } finally {
      clearInterval(ticking)
      progress.end()
      await source.close()
      output.result(documentOf(crawl.report, source.asked), ...summary(crawl.report, source.asked))
    }
    requireComplete(crawl.report, { signal, most })
  } finally {
    await node.close()
  }
}

/** @throws CommandError for a list that cannot be parsed. */
function sourcesOf({ source, config }: CrawlCommand): SourceAddress[] {
  if (source === undefined && config.chainSources.length > 0) return config.chainSources
  try {
    const addresses = parseSources(source ?? 'junglebus')
    if (addresses.length > 0) return addresses
    throw new CommandError('--source: none has nothing to follow', { exit: 'usage' })
  } catch (error) {
    if (!(error instanceof SourceAddressError)) throw error
    throw new CommandError(`--source: ${error.message}`, { exit: 'usage' })
  }
}

function documentOf({ unproven, unknown, ...report }: CrawlReport, asked: ChainSources['asked']): object {
  return {
    ...report,
    unproven: [...unproven],
    unknown: [...unknown],
    requests: asked.requests,
    retried: asked.again,
  }
}

function summary(report: CrawlReport, asked: ChainSources['asked']): string[] {
  const { mints, transfers, outputs, known, deadNodes, lostNames, unproven, unknown, failures } = report
  return [
    `admitted ${mints} mints and ${transfers} transfers (${outputs} outputs), ${known} already known`,
    `requests: ${asked.requests}, ${asked.again} of them retries`,
    `nodes spent by other transactions than mints: ${deadNodes}; names burnt, or moved to outputs that are not admitted: ${lostNames}`,
    `unconfirmed: ${unproven.size}`,
    `transactions that are needed to place ordinals, and that the source does not know: ${unknown.size}`,
    ...listed([...unknown]),
    `not followed: ${failures.length}`,
    ...listed(failures),
  ]
}

function listed(lines: string[]): string[] {
  const shown = lines.slice(0, MAX_LISTED).map((line) => `  ${escapeControlChars(line)}`)
  return lines.length > MAX_LISTED ? [...shown, `  and ${lines.length - MAX_LISTED} more`] : shown
}

function requireComplete(
  { stopped, failures }: CrawlReport,
  { signal, most }: { signal: AbortSignal; most: number },
): void {
  if (stopped === 'by signal') throw signal.reason
  if (stopped === 'at limit')
    throw new CommandError(`stopped at --most ${most} transactions: run the same command again to continue`)
  if (stopped === 'at time limit')
    throw new CommandError('stopped at --max-time: run the same command again to continue')
  if (failures.length > 0)
    throw new CommandError('not every branch could be followed: run the same command again to retry those')
}
