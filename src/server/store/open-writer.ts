import { setTimeout as sleep } from 'node:timers/promises'
import { LocalWriter } from '../../../backend/src/writer/local-writer.js'
import type { SharedLogPlace } from './open-shared-log.js'

export interface WriterPlace {
  /** Where the files of the store are. */
  folder: string
  /** Where the log is that they are a copy of; undefined: they are the log. */
  shared?: SharedLogPlace | undefined
  /** Whether it was open before: then a log that cannot be reached is waited for. */
  isAgain?: boolean
}

/** Until a log that cannot be reached is asked for again, in milliseconds. */
const RETRY_DELAY = 2000

/**
 * Opens the writer of a store in this thread.
 *
 * @throws What SQLite throws, or the driver of the database if the log there cannot be reached for the first time.
 */
export async function openWriter({ folder, shared, isAgain = false }: WriterPlace): Promise<LocalWriter> {
  if (shared === undefined) return new LocalWriter({ folder })
  // Loaded lazily: the drivers take a while, and most hosts do not use them.
  const [{ openSharedLog }, { SharedWriter }] = await Promise.all([
    import('./open-shared-log.js'),
    import('../../../backend/src/writer/shared-writer.js'),
  ])
  for (;;) {
    const log = await openSharedLog(shared).catch((error: unknown) => {
      if (!isAgain) throw error
    })
    if (log !== undefined) return new SharedWriter({ folder, shared: log })
    await sleep(RETRY_DELAY)
  }
}
