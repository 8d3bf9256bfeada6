#!/usr/bin/env node
import { Command } from 'commander'
import { pino } from 'pino'
import { type Config, ConfigError, readConfig } from '../server/config.js'
import { openNode, StartError } from '../server/node.js'
import { runImport } from './import.js'
import { ImportError } from './import-files.js'
import { serve } from './serve.js'

const program = new Command('minetree').description(
  'Names that are mined and content that lives on the chain. Settings come from the environment: see the README.',
)

program
  .command('serve')
  .description('start the service')
  .action(async () => {
    const config = readConfig(process.env)
    await serve({ config, logger: pino({ level: config.logLevel }) })
  })

program
  .command('import')
  .description('admit transactions from files: BEEF, or raw transactions as hex, in whatever order')
  .argument('<paths...>', 'files, or folders to search')
  .option('--trust', 'take raw transactions without a proof on your word; they are kept as unproven', false)
  .action(async (paths: string[], { trust }: { trust: boolean }) => {
    const config = readConfig(process.env)
    // What is not admitted is told at the end, with its cause; the log is for what goes wrong.
    const logger = pino({ level: quieter(config.logLevel) }, pino.destination(2))
    const node = await openNode({ config, logger })
    try {
      await runImport({ node, paths, trust, out: process.stdout, progress: process.stderr })
    } finally {
      await node.close()
    }
  })

function quieter(level: Config['logLevel']): Config['logLevel'] {
  return level === 'info' ? 'warn' : level
}

try {
  await program.parseAsync()
} catch (error) {
  const known = error instanceof ConfigError || error instanceof StartError || error instanceof ImportError
  const text = known || !(error instanceof Error) ? String(known ? error.message : error) : error.stack
  process.stderr.write(`minetree: ${text}\n`)
  process.exitCode = 1
}
