import type { Logger } from 'pino'
import type { Config } from '../server/config/config.js'
import { openNode } from '../server/node.js'
import { CommandError } from './command-error.js'
import type { CommandOutput } from './output.js'

export interface ReindexOptions {
  config: Config
  logger: Logger
  output: CommandOutput
}

/** How often the progress line is brought up to date, in milliseconds. */
const TICK = 100

/**
 * Makes the index of a store anew. Where it is ended before it is done, the next start of whatever opens the store goes
 * on with it.
 *
 * @throws StartError where the store cannot be opened, as when a server has it; CommandError where the new index is not
 * all that was admitted.
 */
export async function runReindex({ config, logger, output }: ReindexOptions): Promise<void> {
  const node = await openNode({ config, logger })
  const { maintenance } = node
  const progress = output.progress()
  const ticking = setInterval(() => {
    progress.update(() => ({ text: maintenance.status.state, share: maintenance.status.done }))
  }, TICK)
  try {
    await maintenance.rebuild()
  } finally {
    clearInterval(ticking)
    progress.end()
    await node.close()
  }
  if (maintenance.status.state !== 'equal')
    throw new CommandError('not all that was admitted could be told again: the log says what')
  output.result({ state: maintenance.status.state }, 'made all that is answered anew')
}
