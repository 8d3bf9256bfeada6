import type { Logger } from 'pino'
import { Crawl } from '../follow/crawl.js'
import type { CrawlReport } from '../follow/crawl-report.js'
import { JungleBusSource } from '../follow/junglebus.js'
import type { Config } from '../server/config/config.js'
import { openNode } from '../server/node.js'
import { escapeControlChars } from '../server/telemetry/escape-control-chars.js'
import { admitBeef } from './admit.js'
import { CommandError } from './command-error.js'
import type { CommandOutput } from './output.js'

export interface CrawlCommand {
  config: Config
  logger: Logger
  /** The URL of what is asked. */
  source: string
  parallel: number
  namesOnly: boolean
  /** After how many transactions to stop; unless set, as many as a source may be believed for. */
  most?: number
  /** How many transactions to follow that are in no block. */
  maxUnproven: number
  /** After how many seconds to stop. */
  maxTime: number
  signal: AbortSignal
  output: CommandOutput
}

/** After how many transactions to stop: a source whose proofs nobody checks can make up any number of them. */
const DEFAULT_MOST = { checked: 1_000_000, unchecked: 1000 }

/** How often the progress line is brought up to date, in milliseconds. */
const TICK = 100
/** Failures that are told, each in a line: a source that lies at all lies often. */
const MAX_TOLD = 20

/**
 * Fills the store from an index of the chain, and says how far it came.
 *
 * @throws CommandError where it did not come to the end of every branch: the same command goes on from there. What
 * `Crawl.run` throws; StartError where the store cannot be opened, as when a server has it.
 */
export async function runCrawl(command: CrawlCommand): Promise<void> {
  const { config, logger, source: url, parallel, namesOnly, maxUnproven, signal, output } = command
  const isUnchecked = config.chainTracker === 'scripts-only'
  const most = command.most ?? DEFAULT_MOST[isUnchecked ? 'unchecked' : 'checked']
  if (!isHttp(url)) throw new CommandError(`--source: ${url} is no URL`, { exit: 'usage' })
  const node = await openNode({ config, logger })
  try {
    const { deployment, limits } = node.config
    if (deployment === undefined)
      throw new CommandError('there is no tree to follow: set PROFILE=mainnet, or GENESIS', {
        exit: 'usage',
      })
    // What is answered decides what is taken.
    if (node.maintenance.status.state === 'rebuilding') await node.maintenance.run()
    const { maxBodyBytes } = config
    const source = new JungleBusSource({ url, parallel, signal })
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
        text: `${mints} mints, ${transfers} transfers; ${requests} requests, ${again} of them again`,
      }))
    }, TICK)
    try {
      await crawl.run()
    } finally {
      clearInterval(ticking)
      progress.end()
      output.result(documentOf(crawl.report, source.asked), ...summary(crawl.report, source.asked))
    }
    assertIndexComplete(crawl.report, { signal, most })
  } finally {
    await node.close()
  }
}

function isHttp(url: string): boolean {
  return URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)
}

function documentOf({ unproven, unknown, ...report }: CrawlReport, asked: JungleBusSource['asked']): object {
  return {
    ...report,
    unproven: [...unproven],
    unknown: [...unknown],
    requests: asked.requests,
    retried: asked.again,
  }
}

function summary(report: CrawlReport, asked: JungleBusSource['asked']): string[] {
  const { mints, transfers, outputs, known, deadNodes, lostNames, unproven, unknown, failures } = report
  return [
    `admitted ${mints} mints and ${transfers} transfers (${outputs} outputs), ${known} known before`,
    `requests: ${asked.requests}, ${asked.again} of them again after a wait`,
    `nodes spent by what is no mint: ${deadNodes}; names burnt, or gone where they are not taken: ${lostNames}`,
    `not in a block yet: ${unproven.size}`,
    `transactions that place ordinals and that the source does not know: ${unknown.size}`,
    ...listed([...unknown]),
    `not followed: ${failures.length}`,
    ...listed(failures),
  ]
}

function listed(lines: string[]): string[] {
  const shown = lines.slice(0, MAX_TOLD).map((line) => `  ${escapeControlChars(line)}`)
  return lines.length > MAX_TOLD ? [...shown, `  and ${lines.length - MAX_TOLD} more`] : shown
}

function assertIndexComplete(
  { stopped, failures }: CrawlReport,
  { signal, most }: { signal: AbortSignal; most: number },
): void {
  if (stopped === 'by signal') throw signal.reason
  if (stopped === 'at limit')
    throw new CommandError(`stopped at --most ${most} transactions: the same command goes on from here`)
  if (stopped === 'at time limit')
    throw new CommandError('stopped at --max-time: the same command goes on from here')
  if (failures.length > 0)
    throw new CommandError('not every branch could be followed: the same command tries those again')
}
