import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { MysqlLog } from '../facts/mysql-log.js'
import type { HostRules } from '../read/host-index.js'
import { serveWriter } from '../writer/client.js'
import { SharedWriter } from '../writer/shared-writer.js'
import type { Connection } from './host-database.js'
import { admissionBy } from './host-rules.js'
import { logOver } from './log-port.js'

/** The data with which the thread of a host's writer starts. */
export interface HostWorkerData {
  folder: string
  /** The id of the log, the port at which it is served, and settings to reach it without that. */
  id: string
  log: MessagePort
  connection: Connection | undefined
}

/**
 * The thread of a host's writer: it derives and writes while the host keeps answering. It has its own connection to the log if it
 * can; otherwise the host serves the log by messages.
 */
if (parentPort === null) throw new Error('host-worker runs in a worker thread only')
const port = parentPort
const { folder, id, log, connection } = workerData as HostWorkerData
const writer = new SharedWriter({ folder, shared: connection ? await ownLog(connection) : logOver(log, id) })

async function ownLog(settings: Connection): Promise<MysqlLog> {
  const { mysqlPool } = await import('../facts/mysql-pool.js')
  const { query, close } = mysqlPool({ ...settings, connectionLimit: 2 })
  return MysqlLog.over(query, { id, close })
}

serveWriter(writer, port, {
  deriveBy: (rules) => writer.deriveBy(admissionBy(rules as HostRules)),
  onClosed() {
    log.close()
    port.close()
  },
})
