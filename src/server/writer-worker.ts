import { parentPort, workerData } from 'node:worker_threads'
import { serveWriter } from '../../backend/src/writer/client.js'
import type { Config } from './config/config.js'
import { admissionOptions } from './store/admission-options.js'
import { openWriter, type WriterPlace } from './store/start-writer.js'

/**
 * The writer thread: it parses, derives and writes, however long that takes, while other threads answer readers. Its work and the
 * settings that the rules depend on come as messages (`backend/src/writer/client.ts`).
 */
const port = parentPort
if (port === null) throw new Error('writer-worker runs in a worker thread only')
// A failure to open ends the thread with the reason.
void openWriter(workerData as WriterPlace).then((writer) =>
  serveWriter(writer, port, {
    deriveBy: (config) => writer.deriveBy(admissionOptions(config as Config)),
    onClosed: () => port.close(),
  }),
)
