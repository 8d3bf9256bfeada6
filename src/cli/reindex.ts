import type { Writable } from 'node:stream'
import type { Logger } from 'pino'
import type { Config } from '../server/config.js'
import { openNode } from '../server/node.js'
import { CommandError } from './command-error.js'

export interface ReindexOptions {
  config: Config
  logger: Logger
  out: Writable
  /** Where the progress line goes. */
  progress: Writable & { isTTY?: boolean }
}

/** Between two progress lines, in milliseconds: more often where they write over each other. */
const EVERY = { terminal: 200, file: 5000 }

/**
 * Makes the index of a store anew. Where it is ended before it is done, the next start of whatever opens the store goes
 * on with it.
 *
 * @throws StartError where the store cannot be opened, as when a server has it; CommandError where the new index is not
 * all that was admitted.
 */
export async function runReindex({ config, logger, out, progress }: ReindexOptions): Promise<void> {
  const node = await openNode({ config, logger })
  const { upkeep } = node
  const say = (): void => {
    const { state, done } = upkeep.status
    progress.write(
      `${progress.isTTY ? '\r' : ''}${state}: ${Math.floor(done * 100)} %${progress.isTTY ? ' ' : '\n'}`,
    )
  }
  const saying = setInterval(say, progress.isTTY ? EVERY.terminal : EVERY.file)
  try {
    await upkeep.rebuild()
  } finally {
    clearInterval(saying)
    if (progress.isTTY) progress.write('\n')
    await node.close()
  }
  if (upkeep.status.state !== 'equal')
    throw new CommandError('not all that was admitted could be told again: the log says what')
  out.write('made all that is answered anew\n')
}
