import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import type { HostRules } from '../graph/host-index.js'
import { SharedWriter } from '../writer/shared-writer.js'
import { serveWriter } from '../writer/thread.js'
import { admissionBy } from './host-rules.js'
import { logOver } from './log-port.js'

/** What the thread of a host's writer begins with. */
export interface HostWorkerData {
  folder: string
  /** Which log it is, and where it is served. */
  id: string
  log: MessagePort
}

/**
 * The thread of a host's writer: it derives and writes for as long as that takes, while the host answers. The log stays with the
 * connection of the host, and what is read of it comes as messages.
 */
if (parentPort === null) throw new Error('host-worker runs in a worker thread only')
const port = parentPort
const { folder, id, log } = workerData as HostWorkerData
const writer = new SharedWriter({ folder, shared: logOver(log, id) })
serveWriter(writer, port, {
  deriveBy: (rules) => writer.deriveBy(admissionBy(rules as HostRules)),
  onClosed() {
    log.close()
    port.close()
  },
})
