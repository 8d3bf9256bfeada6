import { setTimeout as sleep } from 'node:timers/promises'
import { type MessagePort, Worker } from 'node:worker_threads'
import { monotonic } from '../../../backend/src/protocol/monotonic.js'
import { onThreadEnd } from '../../../backend/src/writer/calls.js'
import { connectWriter, WRITER_HEAP_MIB } from '../../../backend/src/writer/client.js'
import { LocalWriter } from '../../../backend/src/writer/local-writer.js'
import type { Writer } from '../../../backend/src/writer/writer.js'
import type { Config } from '../config/config.js'
import { admissionOptions } from './admission-options.js'
import type { SharedLogPlace } from './open-shared-log.js'

export interface WriterPlace {
  folder: string
  /** The shared log that they are a copy of; if undefined, they are the log. */
  shared?: SharedLogPlace | undefined
  /** Whether the log was open before; if so, an unreachable one is waited for. */
  isAgain?: boolean
}

/** The pause before an unreachable log is tried again, in milliseconds. */
const RETRY_DELAY = 2000

/**
 * Opens the writer of a store in this thread.
 *
 * @throws errors of SQLite, or of the database's driver if the log there cannot be reached the first time.
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

/** A writer, in this thread or its own. Its files exist. */
export interface StartedWriter {
  writer: Writer
  /** Derives the index from now on by the rules in these settings. */
  deriveBy(config: Config): void
  /** A port through which another thread of this process writes (`connectWriter`); undefined if the writer is in this thread. */
  share(): MessagePort | undefined
}

/** If a restarted thread ends again within this time, in milliseconds, it would keep doing so. */
const LASTING = 60_000

/**
 * Starts the writer of a store. If its thread dies, it is restarted, and pending calls get a StoreUnavailableError.
 *
 * @param options.worker The compiled `writer-worker`; without it, the writer is in this thread.
 * @param options.onEnd Called each time the thread dies. `isFinal`: it died again within a minute, and is not restarted; nothing
 * can be written any more.
 */
export async function startWriter(
  options: WriterPlace & {
    worker?: URL | undefined
    onEnd: (cause: unknown, end: { isFinal: boolean }) => void
  },
): Promise<StartedWriter> {
  const { folder, shared, worker, onEnd } = options
  if (worker === undefined) {
    const writer = await openWriter({ folder, shared })
    return { writer, deriveBy: (config) => writer.deriveBy(admissionOptions(config)), share: () => undefined }
  }
  let settings: Config | undefined
  let startedAt = Number.NEGATIVE_INFINITY
  const start = (): Worker => {
    const thread = new Worker(worker, {
      workerData: { folder, shared, isAgain: settings !== undefined } satisfies WriterPlace,
      resourceLimits: { maxOldGenerationSizeMb: WRITER_HEAP_MIB },
    })
    onThreadEnd(thread, (code, cause) => {
      writer.end(cause)
      // It was closed; or, without settings, has not begun.
      if (code === 0 || settings === undefined) return
      const isFinal = monotonic() - startedAt < LASTING
      if (!isFinal) {
        startedAt = monotonic()
        writer.connect(start())
        writer.deriveBy(settings)
      }
      onEnd(cause, { isFinal })
    })
    return thread
  }
  const writer = connectWriter(start())
  await writer.ready
  const deriveBy = (config: Config): void => {
    settings = config
    writer.deriveBy(config)
  }
  return { writer, deriveBy, share: () => writer.share() }
}
