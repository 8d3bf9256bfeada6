import { extname } from 'node:path'
import { MessageChannel, Worker } from 'node:worker_threads'
import type { SharedLog } from '../facts/shared-log.js'
import type { Deployment } from '../protocol/mint.js'
import type { HostRules } from '../read/host-index.js'
import { Reader } from '../read/reader.js'
import { onThreadEnd } from '../writer/calls.js'
import { connectWriter, WRITER_HEAP_MIB, type WriterClient } from '../writer/client.js'
import { storeFiles } from '../writer/local-writer.js'
import { SharedWriter } from '../writer/shared-writer.js'
import type { Connection } from './host-database.js'
import { admissionBy } from './host-rules.js'
import type { HostWorkerData } from './host-worker.js'
import { serveLog } from './log-port.js'

interface HostWriterOptions {
  folder: string
  log: SharedLog
  /** Settings for a connection of the thread's own to the log. */
  connection?: Connection | undefined
  rules: HostRules
  /** Called when the thread has ended by itself. */
  onEnd: (cause: unknown) => void
}

/** The writer of a host's index, and a reader of it. */
export class HostWriter {
  /** The tree of the log. */
  tree: Deployment | undefined
  readonly reader: Reader
  private closing: Promise<void> | undefined
  private derivedBy: HostRules | undefined

  private constructor(
    private readonly options: HostWriterOptions,
    readonly writer: SharedWriter | WriterClient,
  ) {
    this.reader = new Reader(storeFiles(options.folder), writer)
  }

  /**
   * Opens the writer: in a thread of its own if that can load this code, else in this one. Hosts compile the code, or load it as
   * TypeScript.
   *
   * @throws What SQLite throws.
   */
  static async open(options: HostWriterOptions): Promise<HostWriter> {
    const { folder, log, rules } = options
    const client = canLoad() && isPlain(rules) ? await inThread(options) : undefined
    return new HostWriter(options, client ?? new SharedWriter({ folder, shared: log }))
  }

  /**
   * Derives the index by these rules, which may change as topic managers are configured; resolves when it has all facts.
   *
   * @returns False if it cannot: a thread has no code of the host, and the tree of a host must be pinned first.
   */
  async deriveBy({ deployment, policy }: HostRules): Promise<boolean> {
    const { derivedBy, options, tree, writer } = this
    if (deployment !== options.rules.deployment) return false
    if (derivedBy !== undefined && derivedBy.policy === policy) return true
    const rules = { ...(tree && { deployment: tree }), ...(policy && { policy }) }
    const isHere = writer instanceof SharedWriter
    if (!isHere && !isPlain(rules)) return false
    this.derivedBy = rules
    if (isHere) writer.deriveBy(admissionBy(rules))
    else writer.deriveBy(rules)
    await writer.opened
    return true
  }

  seekJobs(jobs: readonly string[]): void {
    // Failures are retried with each beat.
    this.writer.seekJobs(jobs).catch(() => {})
  }

  close(): Promise<void> {
    this.closing ??= this.writer
      .close()
      .catch(() => {})
      .finally(() => this.reader.close())
    return this.closing
  }
}

/** Whether rules can be sent to a thread. */
function isPlain({ policy }: HostRules): boolean {
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
}: HostWriterOptions): Promise<WriterClient | undefined> {
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
  return writer
}
