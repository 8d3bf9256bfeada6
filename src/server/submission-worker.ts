import { parentPort, workerData } from 'node:worker_threads'
import type { STEAK } from '@bsv/sdk'
import { pino } from 'pino'
import { type Answer, answerFor } from '../gateway/error-response.js'
import type { Config } from './config.js'
import { createOverlay, type OverlayEvent } from './overlay.js'
import { connectStores } from './stores.js'
import { type Submit, type Submitted, submitTo } from './submit.js'

/** What this thread is sent, and what it sends back. */
export interface SubmissionRequest {
  id: number
  submitted: Submitted
}
export type SubmissionReport =
  | { id: number; steak: STEAK }
  | { id: number; answer: Answer }
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
 * A thread that admits large transactions, over connections of its own to the store that the process has open. While it
 * parses and hashes, for seconds, readers are answered. It does one submission at a time, when it is told to.
 */
const port = parentPort
if (port === null) throw new Error('this is the code of a worker')
const report = (message: SubmissionReport): void => port.postMessage(message)
const config = workerData as Config
const logger = pino(
  { level: config.logLevel },
  { write: (line) => report({ record: JSON.parse(line) as LogRecord }) },
)
let opened: Submit | undefined

/** Connects to the store. @throws StoreUnavailableError where it cannot be reached; it is tried again with the next submission. */
async function open(): Promise<Submit> {
  const { graph, notes, held } = await connectStores(config, (transactions) =>
    report({ event: { kind: 'turned', transactions } }),
  )
  const overlay = createOverlay({ config, graph, notes, held, repeats: false, logger })
  overlay.onEvent((event) => report({ event: portable(event) }))
  return submitTo(overlay.engine)
}

port.on('message', async ({ id, submitted }: SubmissionRequest) => {
  try {
    opened ??= await open()
    report({ id, steak: await opened(submitted) })
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
