import { type BackupOptions, backUp, restore } from '../server/store/backup/backup.js'
import type { CommandOutput } from './output.js'
import { bytesText, grouped } from './progress-line.js'

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
