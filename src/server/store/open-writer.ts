import { LocalWriter } from '../../../backend/src/writer/local-writer.js'
import type { SharedLogPlace } from './open-shared-log.js'

export interface WriterPlace {
  /** Where the files of the store are. */
  folder: string
  /** Where the log is that they are a copy of; undefined: they are the log. */
  shared?: SharedLogPlace | undefined
}

/**
 * Opens the writer of a store in this thread.
 *
 * @throws What SQLite throws, or the driver of the database if the log there cannot be reached.
 */
export async function openWriter({ folder, shared }: WriterPlace): Promise<LocalWriter> {
  if (shared === undefined) return new LocalWriter({ folder })
  // Loaded lazily: the drivers take a while, and most hosts do not use them.
  const [{ openSharedLog }, { SharedWriter }] = await Promise.all([
    import('./open-shared-log.js'),
    import('../../../backend/src/writer/shared-writer.js'),
  ])
  return SharedWriter.open({ folder, shared: await openSharedLog(shared) })
}
