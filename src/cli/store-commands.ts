import type { Command } from 'commander'
import { type Config, readConfig } from '../server/config/config.js'
import {
  type CommandContext,
  defaultUrl,
  quieter,
  readSettings,
  untilSignal,
  wholeNumber,
} from './command.js'
import type { CrawlCommand } from './crawl.js'
import { openLog } from './terminal-log.js'

type CrawlArguments = Pick<
  CrawlCommand,
  'source' | 'parallel' | 'namesOnly' | 'most' | 'maxUnproven' | 'maxTime'
>

/** Adds the commands that open a store. They load its modules when they run, so that other commands start faster. */
export function addStoreCommands(program: Command, context: CommandContext): void {
  const { hideSecrets } = context
  const settings = (): Config => readSettings(context)
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
    .option('--port <number>', 'the port to listen on, instead of PORT')
    .option('--host <address>', 'the address to listen on, instead of HOST')
    .option('--data <folder>', 'the folder of the store, instead of DATA_DIR')
    .action(async ({ port, host, data }: { port?: string; host?: string; data?: string }) => {
      const given = {
        ...(port && { PORT: port }),
        ...(host && { HOST: host }),
        ...(data && { DATA_DIR: data }),
      }
      const config = readConfig({ ...process.env, ...given })
      const { json } = context.output
      const line = context.output.progress()
      const beforeLine = (): void => line.end()
      const logger = await openLog({ to: 'stdout', level: config.logLevel, json, hideSecrets, beforeLine })
      const { serve } = await import('./serve.js')
      await serve({ config, logger, out: context.output.progressStream, line })
    })

  program
    .command('status')
    .description('print the state of a node from its answers and its folder, running or not')
    .option('--url <url>', 'where it listens', defaultUrl())
    .option('--data <folder>', 'the folder of the store, instead of DATA_DIR')
    .action(async ({ url, data }: { url: string; data?: string }) => {
      const { runStatus } = await import('./status.js')
      const config = readSettings(context, { ...process.env, ...(data && { DATA_DIR: data }) })
      await untilSignal(context, (at) => runStatus({ config, url, ...at }))
    })

  program
    .command('import')
    .description('admit transactions from files: BEEF, or raw transactions as hex, in any order')
    .argument('<paths...>', 'files, or folders to search')
    .option('--trust', 'accept raw transactions without a proof; they are stored as unproven', false)
    .action(async (paths: string[], { trust }: { trust: boolean }) => {
      const { runImport } = await import('./import.js')
      const config = settings()
      const open = async () => {
        const { openNode, WRITER_THREAD } = await import('../server/node.js')
        return await openNode({ config, logger: await logFor(config), writerThread: WRITER_THREAD })
      }
      await untilSignal(context, (at) => runImport({ open, paths, trust, ...at }))
    })

  program
    .command('crawl')
    .description('follow the tree and its names along the chain once, without serving: see docs/follow.md')
    .option(
      '--source <list>',
      'the services to ask, written as in CHAIN_SOURCES; by default those, else junglebus',
    )
    .option('--parallel <count>', 'requests at once', wholeNumber(1, 256), 3)
    .option('--names-only', 'do not follow names beyond their mints', false)
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
      const { runCrawl } = await import('./crawl.js')
      const { WRITER_THREAD: writerThread } = await import('../server/node.js')
      const logger = await logFor(config)
      await untilSignal(context, (at) => runCrawl({ ...options, ...at, config, logger, writerThread }))
    })

  /** Runs a command that needs no service, until it ends or the process has to. */
  const maintain = async (
    run: (
      commands: typeof import('./fact-maintenance.js'),
      at: { output: CommandContext['output']; signal: AbortSignal },
    ) => Promise<void>,
  ): Promise<void> => {
    await untilSignal(context, async (at) => run(await import('./fact-maintenance.js'), at))
  }

  program
    .command('check')
    .description(
      'verify all stored bytes against their hashes, while the service runs: see docs/operating.md',
    )
    .action(() => maintain((commands, at) => commands.runFactCheck({ ...at, config: settings() })))

  program
    .command('copy')
    .description('copy a log to a place without one, while services run: see docs/operating.md')
    .argument('<from>', 'a folder, mysql://… or mongodb://…')
    .argument('<to>', 'likewise; it must not hold a log yet')
    .action((from: string, to: string) => maintain((commands, at) => commands.runCopy({ ...at, from, to })))

  program
    .command('build-index')
    .description('build the index of this version from the log before starting it: see docs/operating.md')
    .option('--again', 'derive it again even if it exists; the service must not run', false)
    .action((options: { again: boolean }) =>
      maintain((commands, at) => commands.runBuildIndex({ ...at, ...options, config: settings() })),
    )

  program
    .command('setting')
    .description(
      'print or replace the settings that the index of a log is derived from: see docs/operating.md',
    )
    .argument('[name]', 'such as genesis or tracker')
    .argument('[value]', 'the new value; no service may be running')
    .option('--restored', 'raise the scores of a log that was restored from elsewhere', false)
    .action((name: string | undefined, value: string | undefined, options: { restored: boolean }) =>
      maintain((commands, at) => commands.runSetting({ ...at, ...options, config: settings(), name, value })),
    )

  program
    .command('purge')
    .description('remove content from the log, and block it: see docs/operating.md')
    .argument('<outpoints...>', 'outputs with the content')
    .requiredOption('--reason <text>', 'for the operator; it is shown to nobody else')
    .action((outpoints: string[], options: { reason: string }) =>
      maintain((commands, at) => commands.runPurge({ ...at, ...options, config: settings(), outpoints })),
    )

  program
    .command('prune')
    .description('drop unproven transactions not seen for 14 days; the service must not run on this host')
    .option('--force', 'also mints and transfers of names, if CHAIN_SOURCES names no source', false)
    .action((options: { force: boolean }) =>
      maintain((commands, at) => commands.runPrune({ ...at, ...options, config: settings() })),
    )
}
