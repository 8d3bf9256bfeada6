import type { STEAK } from '@bsv/sdk'
import type { TopicRefusal } from '../../../backend/src/graph/admission-rules.js'
import { BeefError } from '../../../backend/src/protocol/beef.js'
import { TOPICS } from '../../../backend/src/protocol/profile.js'
import type { FactStore } from '../../../backend/src/read/fact-store.js'
import type { Admission } from '../../chain/ancestors/ancestors.js'
import { AnswerError } from '../../gateway/http/errors.js'
import { admittedCount, type Overlay } from './overlay.js'
import type { Submit } from './submission-queue.js'

interface AdmittingNode {
  graph: Pick<FactStore, 'admissions' | 'transactions'>
  overlay: Pick<Overlay, 'engine' | 'onEvent'>
}

const ALL_TOPICS: string[] = Object.values(TOPICS)

/**
 * Submits a BEEF of a transaction to all topics, verified like any submission.
 *
 * @param options.submit By default the engine's, in this thread.
 * @throws Errors that are not the transaction's fault.
 */
export async function admitBeef(
  node: AdmittingNode,
  options: {
    txid: string
    beef: () => Uint8Array | Promise<Uint8Array>
    /** See `submissionPlace`. */
    ahead?: number
    submit?: Submit
  },
): Promise<Admission> {
  const { txid, beef, ahead, submit = node.overlay.engine.submit } = options
  return await admit(node, txid, async () => {
    return await submit({ beef: await beef(), topics: ALL_TOPICS, ...(ahead !== undefined && { ahead }) })
  })
}

/** Submits a raw transaction to all topics, trusting the operator instead of a proof. */
export async function admitTrusted(
  node: AdmittingNode,
  { txid, raw }: { txid: string; raw: Uint8Array },
): Promise<Admission> {
  return await admit(node, txid, () => node.overlay.engine.submitTrusted(raw, ALL_TOPICS))
}

/** The result of a submission. Rethrows errors that are not the transaction's fault. */
async function admit(node: AdmittingNode, txid: string, submit: () => Promise<STEAK>): Promise<Admission> {
  const refusals: TopicRefusal[] = []
  let outputs = 0
  const stopListening = node.overlay.onEvent((event) => {
    // Other submissions may run at the same time.
    if (event.kind === 'refused' && event.refusal.txid === txid) refusals.push(event.refusal)
    if (event.kind === 'admitted')
      for (const { outpoint } of event.admissions) if (outpoint.txid === txid) outputs++
  })
  try {
    const steak = await submit()
    const reason = node.graph.transactions.reasonAgainst(txid)
    if (reason !== undefined) {
      const why = reason.tier === 'rejected' ? 'was rejected by the network' : 'counts'
      return { kind: 'refused', why: `CONFLICT: it is stored, but ${reason.txid} ${why}` }
    }
    if (outputs > 0) return { kind: 'admitted', outputs }
    if (admittedCount(steak) > 0) return { kind: 'known' }
    // A topic without a refusal has the transaction already; another topic may give several refusals.
    if (new Set(refusals.map(({ topic }) => topic)).size < ALL_TOPICS.length) return { kind: 'known' }
    refusals.sort((one, other) => ALL_TOPICS.indexOf(one.topic) - ALL_TOPICS.indexOf(other.topic))
    return {
      kind: 'passed over',
      why: refusals.map(({ code, message }) => `${code}: ${message}`).join('; '),
      codes: refusals.map(({ code }) => code),
    }
  } catch (error) {
    if (!isRefusal(error)) throw error
    return { kind: 'refused', why: `${error.code}: ${error.message}` }
  } finally {
    stopListening()
  }
}

/** Errors about the submission itself, from here or from the thread for large ones. */
const REFUSALS: readonly string[] = ['BAD_BODY', 'TOO_LARGE', 'CONFLICT']

function isRefusal(error: unknown): error is AnswerError | BeefError {
  return error instanceof BeefError || (error instanceof AnswerError && REFUSALS.includes(error.code))
}
