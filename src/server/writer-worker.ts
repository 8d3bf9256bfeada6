import { parentPort, workerData } from 'node:worker_threads'
import { serveWriter } from '../../backend/src/writer/client.js'
import type { Config } from './config/config.js'
import { admissionOptions } from './store/admission-options.js'
import { openWriter, type WriterPlace } from './store/start-writer.js'

/**
 * The thread of the writer: it parses, derives and writes for as long as that takes, while other threads answer readers. What it is
 * to write comes as messages (`backend/src/writer/client.ts`), and so do the settings that the rules follow from.
 */
const port = parentPort
if (port === null) throw new Error('writer-worker runs in a worker thread only')
// What it cannot open ends the thread with the reason.
void openWriter(workerData as WriterPlace).then((writer) =>
  serveWriter(writer, port, {
    deriveBy: (config) => writer.deriveBy(admissionOptions(config as Config)),
    onClosed: () => port.close(),
  }),
)
