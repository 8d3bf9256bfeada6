import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import type { STEAK } from '@bsv/sdk'
import { pino } from 'pino'
import { readBeef } from '../../../backend/src/graph/read-beef.js'
import { type Answer, answerFor } from '../../gateway/http/errors.js'
import type { Config } from '../config/config.js'
import { openFacts } from '../store/open-facts.js'
import { ConflictError, verdictOf } from './errors.js'
import { createOverlay, type Overlay, type OverlayEvent } from './overlay.js'
import type { VerifiedSubmission } from './overlay-engine.js'
import { runScriptsHere, type ScriptJob } from './script-scheduler.js'
import { SharedHeaders } from './shared-headers.js'
import type { Submission } from './submission-queue.js'

/** A task for this thread. A verified submission is kept until it is dropped. */
export type SubmissionTask =
  | { kind: 'run scripts'; job: ScriptJob }
  | { kind: 'verify'; submission: Submission }
  | { kind: 'admit'; verified: number }
  | { kind: 'drop'; verified: number }

export interface WorkerData {
  config: Config
  /** Where block headers are asked for ({@link SharedHeaders}); undefined if proofs are not checked. */
  headersPort: MessagePort | undefined
  /** Where the writer takes the writes of this thread. */
  writerPort: MessagePort
}

/** The messages that this thread receives, and those that it posts. */
export type WorkerRequest = SubmissionTask & { id: number }
export type WorkerReport =
  | { id: number; done: STEAK | undefined }
  | { id: number; lost: ConflictError['lost'] }
  | { id: number; answer: Answer }
  | { id: number; fault: Error }
  | { record: LogRecord }
  | { event: OverlayEvent }

/** A line of the log, as pino writes it. */
export interface LogRecord {
  level: number
  msg: string
  [field: string]: unknown
}

/**
 * The worker thread: runs expensive scripts, and verifies and admits large transactions, with connections of its own to the
 * index. It may parse and hash for seconds while the main thread answers readers.
 */
const port = parentPort
if (port === null) throw new Error('submission-worker runs in a worker thread only')
const report = (message: WorkerReport): void => port.postMessage(message)
const { config, headersPort, writerPort } = workerData as WorkerData
const headers = headersPort && new SharedHeaders(headersPort)
const logger = pino(
  { level: config.logLevel },
  { write: (line) => report({ record: JSON.parse(line) as LogRecord }) },
)
let opening: Promise<Overlay> | undefined

/** @throws StoreUnavailableError if the store cannot be reached; the next submission tries again. */
async function open(): Promise<Overlay> {
  const { graph, held } = await openFacts(config, {
    onReorg: (transactions) => report({ event: { kind: 'reorganised', transactions } }),
    logger,
    writerPort,
  })
  const overlay = createOverlay({ config, graph, held, headers, logger })
  overlay.onEvent((event) => report({ event }))
  return overlay
}

async function overlay(): Promise<Overlay> {
  opening ??= open()
  try {
    return await opening
  } catch (error) {
    opening = undefined
    throw error
  }
}

const verified = new Map<number, VerifiedSubmission>()

async function verify(id: number, { beef, topics, requestId, client, ahead }: Submission): Promise<void> {
  const { engine } = await overlay()
  const contents = readBeef(beef)
  const sources = await engine.verify(contents, topics)
  verified.set(id, { contents, topics, sources, requestId, ahead, ...(client !== undefined && { client }) })
}

async function admit(id: number): Promise<STEAK> {
  const submission = verified.get(id)
  if (submission === undefined) throw new Error(`no submission ${id} was verified in this thread`)
  const { engine } = await overlay()
  return await engine.admit(submission)
}

async function runScripts(job: ScriptJob): Promise<void> {
  try {
    await runScriptsHere(job)
  } catch (error) {
    throw answerFor(error) === undefined ? new Error(verdictOf(error)) : error
  }
}

port.on('message', async (request: WorkerRequest) => {
  const { id } = request
  try {
    let done: STEAK | undefined
    if (request.kind === 'drop') verified.delete(request.verified)
    else if (request.kind === 'run scripts') await runScripts(request.job)
    else if (request.kind === 'verify') await verify(id, request.submission)
    else done = await admit(request.verified)
    report({ id, done })
  } catch (error) {
    const answer = answerFor(error)
    if (error instanceof ConflictError) report({ id, lost: plainLost(error) })
    else if (answer !== undefined) report({ id, answer: plainAnswer(answer) })
    else report({ id, fault: error instanceof Error ? error : new Error(String(error)) })
  }
})

function plainLost({ lost: { message, txid, reason } }: ConflictError): ConflictError['lost'] {
  return { message, txid, reason: { txid: reason.txid, tier: reason.tier } }
}

/** As plain data: an error that is posted loses its class. */
function plainAnswer({ code, message, data, headers }: Answer): Answer {
  return { code, message, ...(data && { data }), ...(headers && { headers }) }
}
