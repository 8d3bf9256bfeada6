import type { STEAK } from '@bsv/sdk'
import type { TopicRefusal } from '../../backend/src/graph/admission-rules.js'
import { BeefError } from '../../backend/src/protocol/beef.js'
import { TOPICS } from '../../backend/src/protocol/profile.js'
import type { Admission } from '../follow/crawl.js'
import type { Node } from '../server/node.js'
import { SubmissionError } from '../server/submission/errors.js'
import { admittedCount } from '../server/submission/overlay.js'

const ALL_TOPICS = Object.values(TOPICS)

/** Submits a BEEF of a transaction to all topics, verified like any submission. */
export async function admitBeef(
  node: Node,
  { txid, beef }: { txid: string; beef: () => Uint8Array | Promise<Uint8Array> },
): Promise<Admission> {
  return await admit(node, txid, async () => {
    return await node.overlay.engine.submit({ beef: await beef(), topics: ALL_TOPICS })
  })
}

/** Submits a raw transaction to all topics, trusting the operator instead of a proof. */
export async function admitTrusted(
  node: Node,
  { txid, raw }: { txid: string; raw: Uint8Array },
): Promise<Admission> {
  return await admit(node, txid, () => node.overlay.engine.submitTrusted(raw, ALL_TOPICS))
}

/** The result of a submission. Rethrows errors that are not the transaction's fault. */
async function admit(node: Node, txid: string, submit: () => Promise<STEAK>): Promise<Admission> {
  const refusals: TopicRefusal[] = []
  const stopListening = node.overlay.onEvent((event) => {
    // Other submissions may run at the same time.
    if (event.kind === 'refused' && event.refusal.txid === txid) refusals.push(event.refusal)
  })
  try {
    const before = (await node.graph.admissions.ofTransaction(txid)).length
    const steak = await submit()
    await node.backlog.done()
    const winner = await node.graph.transactions.winnerOver(txid)
    if (winner !== undefined) return { kind: 'refused', why: `CONFLICT: it is stored, but ${winner} counts` }
    const outputs = admittedCount(steak)
    if (outputs > before) return { kind: 'admitted', outputs: outputs - before }
    if (outputs > 0) return { kind: 'known' }
    // A topic without a refusal has it already; another may give several refusals.
    if (new Set(refusals.map(({ topic }) => topic)).size < ALL_TOPICS.length) return { kind: 'known' }
    return {
      kind: 'passed over',
      why: refusals.map(({ code, message }) => `${code}: ${message}`).join('; '),
      codes: refusals.map(({ code }) => code),
    }
  } catch (error) {
    if (!(error instanceof SubmissionError || error instanceof BeefError)) throw error
    return { kind: 'refused', why: `${error.code}: ${error.message}` }
  } finally {
    stopListening()
  }
}
