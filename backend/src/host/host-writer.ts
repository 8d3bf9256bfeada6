import { extname } from 'node:path'
import { MessageChannel, Worker } from 'node:worker_threads'
import type { SharedLog } from '../facts/shared-log.js'
import type { HostRules } from '../read/host-index.js'
import { onThreadEnd } from '../writer/calls.js'
import { connectWriter, WRITER_HEAP_MIB } from '../writer/client.js'
import { SharedWriter } from '../writer/shared-writer.js'
import type { Writer } from '../writer/writer.js'
import type { Connection } from './host-database.js'
import { admissionBy } from './host-rules.js'
import type { HostWorkerData } from './host-worker.js'
import { serveLog } from './log-port.js'

export interface HostWriter {
  writer: Writer
  /** Whether it is in a thread of its own, which cannot take rules with code. */
  isThread: boolean
  deriveBy(rules: HostRules): void
}

export interface HostWriterOptions {
  folder: string
  log: SharedLog
  /** Settings for a connection of the thread's own to the log. */
  connection?: Connection | undefined
  rules: HostRules
  /** Called when the thread has ended by itself. */
  onEnd: (cause: unknown) => void
}

/**
 * Opens the writer of a host's index: in a thread of its own if that can load this code, else in this one. Hosts compile the
 * code, or load it as TypeScript.
 */
export async function openHostWriter(options: HostWriterOptions): Promise<HostWriter> {
  const { folder, log, rules } = options
  if (canLoad() && isPlain(rules)) {
    const writer = await inThread(options)
    if (writer !== undefined) return writer
  }
  const writer = new SharedWriter({ folder, shared: log })
  return { writer, isThread: false, deriveBy: (some) => writer.deriveBy(admissionBy(some)) }
}

/** Whether rules can be sent to a thread. */
export function isPlain({ policy }: HostRules): boolean {
  return policy?.admit === undefined
}

const EXTENSION = extname(import.meta.url)

/** Node cannot run TypeScript that imports the names of compiled files, except with a loader: then threads have it, too. */
function canLoad(): boolean {
  const flags = [...process.execArgv, process.env.NODE_OPTIONS ?? ''].join(' ')
  return EXTENSION === '.js' || /--(?:import|require|loader|experimental-loader)\b/.test(flags)
}

/** @returns Undefined if the thread did not begin. */
async function inThread({
  folder,
  log,
  connection,
  onEnd,
}: HostWriterOptions): Promise<HostWriter | undefined> {
  const { port1, port2 } = new MessageChannel()
  const thread = new Worker(new URL(`./host-worker${EXTENSION}`, import.meta.url), {
    workerData: { folder, id: log.id, log: port2, connection } satisfies HostWorkerData,
    transferList: [port2],
    resourceLimits: { maxOldGenerationSizeMb: WRITER_HEAP_MIB },
  })
  serveLog(log, port1)
  const writer = connectWriter(thread)
  let hasBegun = false
  onThreadEnd(thread, (code, cause) => {
    port1.close()
    writer.end(cause)
    if (hasBegun && code !== 0) onEnd(cause)
  })
  try {
    await writer.ready
  } catch {
    return undefined
  }
  hasBegun = true
  // A host may end without closing it.
  thread.unref()
  return { writer, isThread: true, deriveBy: (rules) => writer.deriveBy(rules) }
}
