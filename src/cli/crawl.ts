import { setMaxListeners } from 'node:events'
import type { Writable } from 'node:stream'
import type { Logger } from 'pino'
import { Crawl } from '../crawl/crawl.js'
import type { CrawlReport } from '../crawl/crawl-report.js'
import { JungleBusSource } from '../crawl/junglebus.js'
import type { Config } from '../server/config.js'
import { harmless } from '../server/harmless-text.js'
import { openNode } from '../server/node.js'
import { admitBeef } from './admit.js'
import { CommandError } from './command-error.js'

export interface CrawlCommand {
  config: Config
  logger: Logger
  /** The URL of what is asked. */
  source: string
  parallel: number
  namesOnly: boolean
  /** After how many transactions to stop. */
  most: number
  signal: AbortSignal
  out: Writable
  /** Where the progress line goes. */
  progress: Writable & { isTTY?: boolean }
}

/** Between two progress lines, in milliseconds: more often where they write over each other. */
const EVERY = { terminal: 200, file: 5000 }
/** Failures that are told, each in a line: a source that lies at all lies often. */
const MAX_TOLD = 100

/**
 * Fills the store from an index of the chain, and says how far it came.
 *
 * @throws CommandError where it did not come to the end of every branch: the same command goes on from there. What
 * `Crawl.run` throws; StartError where the store cannot be opened, as when a server has it.
 */
export async function runCrawl(command: CrawlCommand): Promise<void> {
  const { config, logger, source: url, parallel, namesOnly, most, signal, out, progress } = command
  if (!isHttp(url)) throw new CommandError(`--source: ${url} is no URL`)
  const node = await openNode({ config, logger })
  try {
    const { deployment, limits } = node.config
    if (deployment === undefined)
      throw new CommandError('there is no tree to follow: set PROFILE=mainnet, or GENESIS')
    // What is answered decides what is taken.
    if (node.upkeep.status.state === 'rebuilding') await node.upkeep.run()
    const { maxBodyBytes } = config
    // Each question under way hears it.
    setMaxListeners(0, signal)
    const source = new JungleBusSource({ url, parallel, maxTransactionBytes: maxBodyBytes, signal })
    const crawl = new Crawl({
      node: {
        genesis: deployment.genesis,
        store: node.graph,
        admit: ({ txid, beef }) => admitBeef(node, { txid, beef: () => beef }),
      },
      ...{ source, parallel, most, signal },
      names: !namesOnly,
      limits: { maxTransactions: limits.maxBeefTransactions, maxBytes: maxBodyBytes },
    })
    const say = (): void => {
      const { mints, transfers } = crawl.report
      const line = `${mints} mints, ${transfers} transfers; ${source.asked.requests} requests, ${source.asked.again} of them again`
      progress.write(progress.isTTY ? `\r${line} ` : `${line}\n`)
    }
    const saying = setInterval(say, progress.isTTY ? EVERY.terminal : EVERY.file)
    try {
      await crawl.run()
    } finally {
      clearInterval(saying)
      if (progress.isTTY) {
        say()
        progress.write('\n')
      }
      out.write(`${summary(crawl.report, source.asked).join('\n')}\n`)
    }
    requireWhole(crawl.report)
  } finally {
    await node.close()
  }
}

function isHttp(url: string): boolean {
  return URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)
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
  const shown = lines.slice(0, MAX_TOLD).map((line) => `  ${harmless(line)}`)
  return lines.length > MAX_TOLD ? [...shown, `  and ${lines.length - MAX_TOLD} more`] : shown
}

function requireWhole({ stopped, failures }: CrawlReport): void {
  if (stopped === 'by signal') throw new CommandError('stopped: the same command goes on from here')
  if (stopped === 'at limit')
    throw new CommandError('stopped at --most transactions: the same command goes on from here')
  if (failures.length > 0)
    throw new CommandError('not every branch could be followed: the same command tries those again')
}
