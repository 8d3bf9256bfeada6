import { MerklePath } from '@bsv/sdk'
import { posted, submission } from '../../test/support/server/test-server.js'
import type { Lives } from './lives.js'

/** What is sent, and what has to come of it: what it admits the first time, or the transaction that it loses against. */
export interface Write {
  beef: Uint8Array
  topics: string[]
  /** Output indices, in the topic named first; none of a transaction that is known. */
  admits?: number[]
  conflictsWith?: string
}

export type Submit = (write: Write) => Promise<void>

/** Submits until the server has answered, and complains of any other answer than the one that is right. */
export function submitTo(
  lives: Lives,
  options: { complain: (what: string) => void; count: () => void },
): Submit {
  return async ({ beef, topics, admits, conflictsWith }) => {
    options.count()
    const { answer, wasCutOff } = await lives.ask('/submit', submission(beef, topics))
    const { status, json } = answer
    if (conflictsWith !== undefined) {
      const { code, txid } = json as { code?: string; txid?: string }
      if (status !== 409 || code !== 'CONFLICT' || txid !== conflictsWith)
        options.complain(`${status} and ${txid} for what loses against ${conflictsWith}`)
      return
    }
    const [topic = ''] = topics
    const admitted = (json as Record<string, { outputsToAdmit?: number[] }>)[topic]?.outputsToAdmit?.join()
    // The server may have been killed after it had stored this, and before it could say so.
    const isRight = admitted === admits?.join() || (wasCutOff && admitted === '')
    if (status !== 200 || !isRight) options.complain(`${status} ${answer.body} for what admits ${admits}`)
  }
}

/** Says of a transaction that is known which block holds it, and nothing else. */
export type BringProof = (of: { txid: string; height: number }) => Promise<void>

/** Brings proofs as a transaction processor does. */
export function bringProofTo(
  lives: Lives,
  options: { complain: (what: string) => void; count: () => void },
): BringProof {
  return async ({ txid, height }) => {
    options.count()
    const merklePath = new MerklePath(height, [[{ offset: 0, hash: txid, txid: true }]]).toHex()
    const { answer } = await lives.ask('/arc-ingest', posted({ txid, merklePath, blockHeight: height }))
    if (answer.status !== 200) options.complain(`${answer.status} ${answer.body} for a proof of ${txid}`)
  }
}
