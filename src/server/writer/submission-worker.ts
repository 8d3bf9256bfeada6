import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { pino } from 'pino'
import { FactStore } from '../../../backend/src/read/fact-store.js'
import { Reader } from '../../../backend/src/read/reader.js'
import {
  type CallAnswer,
  type PlainError,
  plainError,
  serveCalls,
} from '../../../backend/src/writer/calls.js'
import { connectWriter } from '../../../backend/src/writer/client.js'
import { storeFiles } from '../../../backend/src/writer/local-writer.js'
import { type Answer, answerFor } from '../../gateway/http/errors.js'
import type { Config } from '../config/config.js'
import { storeFolder } from '../config/place.js'
import { ConflictError } from './errors.js'
import { sharedHeaders } from './open-headers.js'
import { createOverlay, type Overlay, type OverlayEvent } from './overlay.js'
import { runScriptsHere } from './script-scheduler.js'
import type { Submit } from './submission-queue.js'

export interface WorkerData {
  config: Config
  /** Answers questions about block headers ({@link sharedHeaders}); undefined if proofs are not checked. */
  headersPort: MessagePort | undefined
  /** Takes the writes of this thread. */
  writerPort: MessagePort
}

/** The messages that this thread posts: answers to calls, lines of its log, and events of its overlay. */
export type WorkerReport = CallAnswer | { record: LogRecord } | { event: OverlayEvent }

/** An error as plain data, with its answer: an error loses its class when it is posted. */
export interface PlainRefusal extends PlainError {
  answer?: Answer
  lost?: ConflictError['lost']
}

/** A log line, as pino writes it. */
export interface LogRecord {
  level: number
  msg: string
  [field: string]: unknown
}

/**
 * The worker thread: runs expensive scripts and submits large transactions, with its own connections to the index. It may parse and
 * hash for seconds while the main thread answers readers.
 */
const port = parentPort
if (port === null) throw new Error('submission-worker runs in a worker thread only')
const report = (message: WorkerReport): void => port.postMessage(message)
const { config, headersPort, writerPort } = workerData as WorkerData
const headers = headersPort && sharedHeaders(headersPort)
const logger = pino(
  { level: config.logLevel },
  { write: (line) => report({ record: JSON.parse(line) as LogRecord }) },
)
const writer = connectWriter(writerPort)
// If the writer thread ends, so does this one; the next submission starts another with a port to the new writer.
writerPort.on('close', () => process.exit())
let opened: Overlay | undefined

/** @throws if the store cannot be read; the next submission tries again. */
function open(): Overlay {
  const reader = new Reader(storeFiles(storeFolder(config)), writer)
  const onReorg = (transactions: number): void => report({ event: { kind: 'reorganised', transactions } })
  const graph = new FactStore({ reader, writer, onReorg })
  const overlay = createOverlay({ config, graph, held: graph.held, headers, logger })
  overlay.onEvent((event) => report({ event }))
  return overlay
}

const submit: Submit = (submission) => {
  opened ??= open()
  return opened.engine.submit(submission)
}

serveCalls(port, { submit, runScripts: runScriptsHere }, plainRefusal)

function plainRefusal(error: unknown): PlainRefusal {
  const plain: PlainRefusal = plainError(error)
  const answer = answerFor(error)
  if (answer !== undefined) {
    const { code, message, data, headers } = answer
    plain.answer = { code, message, ...(data && { data }), ...(headers && { headers }) }
  }
  if (error instanceof ConflictError) {
    const { message, txid, reason } = error.lost
    plain.lost = { message, txid, reason: { txid: reason.txid, tier: reason.tier } }
  }
  return plain
}
