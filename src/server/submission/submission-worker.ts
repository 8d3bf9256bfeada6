import { parentPort, workerData } from 'node:worker_threads'
import type { STEAK } from '@bsv/sdk'
import { Mutex } from 'async-mutex'
import { pino } from 'pino'
import { readBeef } from '../../../backend/src/graph/read-beef.js'
import { type Answer, answerFor } from '../../gateway/http/errors.js'
import type { Config } from '../config/config.js'
import { connectStores } from '../store/stores.js'
import { createOverlay, type Overlay, type OverlayEvent } from './overlay.js'
import type { Verified } from './overlay-engine.js'
import { runScriptsHere, type ScriptJob } from './script-runner.js'
import type { Submitted } from './submit.js'

/** What this thread is asked to do. A submission that was verified is kept until it is admitted or dropped. */
export type SubmissionTask =
  | { kind: 'run scripts'; job: ScriptJob }
  | { kind: 'verify'; submitted: Submitted }
  | { kind: 'admit'; verified: number }
  | { kind: 'drop'; verified: number }

/** What this thread is sent, and what it sends back. */
export type SubmissionRequest = SubmissionTask & { id: number }
export type SubmissionReport =
  | { id: number; done: STEAK | undefined }
  | { id: number; answer: Answer }
  | { id: number; refusal: string }
  | { id: number; fault: string }
  | { record: LogRecord }
  | { event: OverlayEvent }

/** A line of the log, as pino writes it. */
export interface LogRecord {
  level: number
  msg: string
  [field: string]: unknown
}

/**
 * A thread that runs scripts which take long, and verifies and admits large transactions, over connections of its own to
 * the store that the process has open. While it parses and hashes, for seconds, readers are answered. What it verifies at
 * once goes on in turn; it admits when it is told to.
 */
const port = parentPort
if (port === null) throw new Error('this module must run in a worker thread')
const report = (message: SubmissionReport): void => port.postMessage(message)
const config = workerData as Config
const logger = pino(
  { level: config.logLevel },
  { write: (line) => report({ record: JSON.parse(line) as LogRecord }) },
)
let opening: Promise<Overlay> | undefined

/** Connects to the store. @throws StoreUnavailableError where it cannot be reached; it is tried again with the next submission. */
async function open(): Promise<Overlay> {
  const { graph, notes, held } = await connectStores(config, (transactions) =>
    report({ event: { kind: 'turned', transactions } }),
  )
  const overlay = createOverlay({ config, graph, notes, held, repeats: false, logger })
  overlay.onEvent((event) => report({ event: portable(event) }))
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

const kept = new Map<number, Verified>()
/** All submissions wait for the one that is being admitted: nothing else is begun meanwhile. */
const admitting = new Mutex()

async function verify(id: number, { beef, topics, requestId }: Submitted): Promise<void> {
  await admitting.waitForUnlock()
  const { proofs, engine } = await overlay()
  const contents = readBeef(beef)
  const sources = await engine.verify(contents, topics, proofs.openTracker())
  kept.set(id, { contents, topics, sources, requestId })
}

async function admit(id: number): Promise<STEAK> {
  const verified = kept.get(id)
  kept.delete(id)
  if (verified === undefined) throw new Error('the transaction to admit was not verified in this thread')
  const { engine } = await overlay()
  return await admitting.runExclusive(() => engine.admit(verified))
}

async function runScripts(id: number, job: ScriptJob): Promise<void> {
  try {
    await runScriptsHere(job)
    report({ id, done: undefined })
  } catch (error) {
    const answer = answerFor(error)
    // Whatever else is thrown there is what the scripts say.
    report(answer === undefined ? { id, refusal: reasonOf(error) } : { id, answer: plain(answer) })
  }
}

port.on('message', async (request: SubmissionRequest) => {
  const { id } = request
  if (request.kind === 'drop') kept.delete(request.verified)
  if (request.kind === 'run scripts') return await runScripts(id, request.job)
  try {
    if (request.kind === 'verify') await verify(id, request.submitted)
    report({ id, done: request.kind === 'admit' ? await admit(request.verified) : undefined })
  } catch (error) {
    const answer = answerFor(error)
    if (answer === undefined)
      report({ id, fault: error instanceof Error ? String(error.stack) : String(error) })
    else report({ id, answer: plain(answer) })
  }
})

/** Of a hook that failed, what is counted: what it was about has been logged, and may be large. */
function portable(event: OverlayEvent): OverlayEvent {
  if (event.kind !== 'hook failed') return event
  const { service, kept } = event.failure
  return { ...event, failure: { service, kept, error: undefined } }
}

/** Errors lose what makes them answers on the way to another thread. */
function plain({ status, code, message, data, headers }: Answer): Answer {
  return { status, code, message, ...(data && { data }), ...(headers && { headers }) }
}

/** The first line: the interpreter may quote what it was given. */
function reasonOf(error: unknown): string {
  const [reason = ''] = (error instanceof Error ? error.message : String(error)).split('\n')
  return reason.slice(0, 300)
}
