import type { Command } from 'commander'
import { type Config, readConfig } from '../server/config/config.js'
import { type CommandContext, quieter, untilSignal, wholeNumber } from './command.js'
import type { CrawlCommand } from './crawl.js'
import { openLog } from './terminal-log.js'

type CrawlArguments = Pick<
  CrawlCommand,
  'source' | 'parallel' | 'namesOnly' | 'most' | 'maxUnproven' | 'maxTime'
>

/** Adds the commands that open a store. They load its modules when they run, so that other commands start faster. */
export function addStoreCommands(program: Command, context: CommandContext): void {
  const { hideSecrets } = context
  const settings = (): Config => {
    const config = readConfig(process.env)
    for (const warning of config.warnings) context.output.warn(warning)
    return config
  }
  // Results go to standard output; the log is for problems.
  const logFor = (config: Config) =>
    openLog({
      to: 'stderr',
      level: quieter(config.logLevel),
      json: context.output.json,
      hideSecrets,
    })

  program
    .command('serve')
    .description('start the service; with --json, log JSON on a terminal, too')
    .action(async () => {
      const config = readConfig(process.env)
      const { json } = context.output
      const line = context.output.progress()
      const beforeLine = (): void => line.end()
      const logger = await openLog({ to: 'stdout', level: config.logLevel, json, hideSecrets, beforeLine })
      const { serve } = await import('./serve.js')
      await serve({ config, logger, out: context.output.progressStream, line })
    })

  program
    .command('import')
    .description('admit transactions from files: BEEF, or raw transactions as hex, in any order')
    .argument('<paths...>', 'files, or folders to search')
    .option('--trust', 'accept raw transactions without a proof; they are stored as unproven', false)
    .action(async (paths: string[], { trust }: { trust: boolean }) => {
      const { runImport } = await import('./import.js')
      const config = settings()
      const interruption = untilSignal()
      const { output } = context
      const open = async () => {
        const { openNode } = await import('../server/node.js')
        return await openNode({ config, logger: await logFor(config) })
      }
      await interruption.during(() => runImport({ open, paths, trust, output, signal: interruption.signal }))
    })

  program
    .command('crawl')
    .description('follow the tree and its names along the chain once, without serving: see docs/follow.md')
    .option('--source <list>', 'which services to ask, as in CHAIN_SOURCES; by default those, else junglebus')
    .option('--parallel <count>', 'requests at once', wholeNumber(1, 256), 3)
    .option('--names-only', 'do not follow names after they were mined', false)
    .option(
      '--most <count>',
      'stop after this many transactions; by default 1,000,000, or 1,000 if CHAIN_TRACKER checks no proofs',
      wholeNumber(1, 1_000_000_000),
    )
    .option(
      '--max-unproven <count>',
      'follow at most this many unconfirmed transactions',
      wholeNumber(0, 1_000_000),
      100,
    )
    .option('--max-time <seconds>', 'stop after this many seconds', wholeNumber(1, 100_000_000), 86_400)
    .action(async (options: CrawlArguments) => {
      const config = settings()
      const interruption = untilSignal()
      const { runCrawl } = await import('./crawl.js')
      const { output } = context
      const logger = await logFor(config)
      await interruption.during(() =>
        runCrawl({ ...options, output, config, logger, signal: interruption.signal }),
      )
    })

  program
    .command('reindex')
    .description('rebuild the index from the transactions and what was admitted: see docs/durability.md')
    .action(async () => {
      const config = settings()
      const { runReindex } = await import('./maintenance.js')
      await runReindex({ config, logger: await logFor(config), output: context.output })
    })

  program
    .command('backup')
    .description('write the whole store to a file, while the service runs: see docs/operating.md')
    .argument('<file>', 'must not exist yet')
    .action(async (file: string) => {
      const config = settings()
      const interruption = untilSignal()
      const { runBackup } = await import('./maintenance.js')
      const { output } = context
      await interruption.during(() => runBackup({ config, file, output, signal: interruption.signal }))
    })

  program
    .command('check')
    .description(
      'verify all stored bytes against their hashes, while the service runs: see docs/operating.md',
    )
    .action(async () => {
      const config = settings()
      const interruption = untilSignal()
      const { runCheck } = await import('./maintenance.js')
      const { output } = context
      await interruption.during(() => runCheck({ config, output, signal: interruption.signal }))
    })

  program
    .command('restore')
    .description('load a backup into an empty store of any engine: see docs/operating.md')
    .argument('<file>', 'a file written by `minetree backup`')
    .action(async (file: string) => {
      const config = settings()
      const interruption = untilSignal()
      const { runRestore } = await import('./maintenance.js')
      const { output } = context
      await interruption.during(() => runRestore({ config, file, output, signal: interruption.signal }))
    })
}
