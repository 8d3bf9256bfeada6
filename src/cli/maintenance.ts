import type { Logger } from 'pino'
import type { Config } from '../server/config/config.js'
import { openNode } from '../server/node.js'
import { type BackupOptions, backUp, check, restore } from '../server/store/backup/backup.js'
import type { DatabaseIndex } from '../server/store/database-stores.js'
import { CommandError } from './command.js'
import { bytesText, type CommandOutput, grouped } from './output.js'

type CommandOptions = BackupOptions & { output: CommandOutput }

/** Writes a backup and reports its size. @throws as {@link backUp}. */
export async function runBackup({ output, ...options }: CommandOptions): Promise<void> {
  const { file } = options
  const progress = output.progress()
  try {
    const { rows, bytes, sha256 } = await backUp({
      ...options,
      onProgress: ({ rows, share }) =>
        progress.update(() => ({
          text: `${grouped(rows)} rows`,
          share,
        })),
    })
    progress.end()
    output.result(
      { file, rows, bytes, sha256 },
      `wrote ${file}: ${grouped(rows)} rows, ${bytesText(bytes)}, verified`,
    )
  } finally {
    progress.end()
  }
}

/** Loads a backup and reports what it held. @throws as {@link restore}. */
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
      `restored ${grouped(rows)} rows from ${file}, written at ${header.at}`,
    )
  } finally {
    progress.end()
  }
}

/**
 * Verifies all bytes of a store and prints what is damaged.
 *
 * @throws as {@link check}; CommandError if anything is.
 */
export async function runCheck({
  output,
  ...options
}: {
  config: Config
  signal: AbortSignal
  output: CommandOutput
}): Promise<void> {
  const progress = output.progress()
  let damaged = 0
  try {
    const { blobs, bytes } = await check({
      ...options,
      onProgress: ({ blobs, share }) =>
        progress.update(() => ({
          text: `${grouped(blobs)} verified`,
          ...(share !== undefined && { share }),
        })),
      onDamage: (damage) => {
        damaged++
        progress.end()
        output.result(damage, `${damage.problem}: ${damage.kind} ${damage.id}`)
      },
    })
    progress.end()
    const verified = `${grouped(blobs)} transactions, bodies and records, ${bytesText(bytes)}`
    if (damaged > 0)
      throw new CommandError(`${grouped(damaged)} damaged or missing of ${verified}: see docs/operating.md`)
    output.result({ blobs, bytes, damaged }, `verified ${verified}`)
  } finally {
    progress.end()
  }
}

export interface ReindexOptions {
  config: Config
  logger: Logger
  output: CommandOutput
}

/** How often the progress line is updated, in milliseconds. */
const TICK = 100

/**
 * Rebuilds the index of a store. If it is interrupted, the next process that opens the store continues.
 *
 * @throws StartError if the store cannot be opened, for example because a server has it open; CommandError if the new index
 * does not match the admitted set.
 */
export async function runReindex({ config, logger, output }: ReindexOptions): Promise<void> {
  const node = await openNode({ config, logger })
  const maintenance = node.maintenance as DatabaseIndex
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
    throw new CommandError('the rebuilt index does not match the admitted set: see the log')
  output.result({ state: maintenance.status.state }, 'rebuilt the index')
}
