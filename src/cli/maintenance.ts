import type { Logger } from 'pino'
import { type BackupOptions, backUp, restore } from '../server/backup/backup.js'
import type { Config } from '../server/config.js'
import { openNode } from '../server/node.js'
import { CommandError } from './command.js'
import { bytesText, type CommandOutput, grouped } from './output.js'

type CommandOptions = BackupOptions & { output: CommandOutput }

/** Writes a backup and says how large it is. @throws as {@link backUp}. */
export async function runBackup({ output, ...options }: CommandOptions): Promise<void> {
  const { file } = options
  const progress = output.progress()
  try {
    const { rows, bytes, sha256 } = await backUp({
      ...options,
      onProgress: ({ rows, share }) =>
        progress.update(() => ({
          text: `${grouped(rows)} rows`,
          ...(share !== undefined && { share }),
        })),
    })
    progress.end()
    output.result(
      { file, rows, bytes, sha256 },
      `wrote ${file}: ${grouped(rows)} rows, ${bytesText(bytes)}, read back and found complete`,
    )
  } finally {
    progress.end()
  }
}

/** Loads a backup and says what it was of. @throws as {@link restore}. */
export async function runRestore({ output, ...options }: CommandOptions): Promise<void> {
  const { file } = options
  const progress = output.progress()
  try {
    const { rows, header } = await restore({
      ...options,
      onProgress: (step, share) => progress.update(() => ({ text: `${step} ${file}`, share })),
    })
    progress.end()
    output.result(
      { file, rows, genesis: header.genesis ?? null, writtenAt: header.at, writtenBy: header.minetree },
      `restored ${grouped(rows)} rows of ${header.at} from ${file}`,
    )
  } finally {
    progress.end()
  }
}

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
  const { upkeep } = node
  const progress = output.progress()
  const ticking = setInterval(() => {
    progress.update(() => ({ text: upkeep.status.state, share: upkeep.status.done }))
  }, TICK)
  try {
    await upkeep.rebuild()
  } finally {
    clearInterval(ticking)
    progress.end()
    await node.close()
  }
  if (upkeep.status.state !== 'equal')
    throw new CommandError('not all that was admitted could be told again: the log says what')
  output.result({ state: upkeep.status.state }, 'made all that is answered anew')
}
