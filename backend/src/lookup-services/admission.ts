import type { OutputAdmittedByTopic, OutputSpent } from '@bsv/overlay'
import { type BeefContents, readBeef } from '../graph/read-beef.js'

/** Where a lookup service finds a transaction that the engine named, where the host has it read already. */
export interface SubmissionSource {
  /** The BEEF in which the transaction is being submitted right now. */
  submitted(txid: string): BeefContents | undefined
  /**
   * Whether a hook that is called right now belongs to a submission of which nothing is written yet: what fails then fails
   * all of it, and it is sent again.
   */
  readonly open: boolean
}

/** The BEEF behind an admission notice: from the host's own submission, or read from a whole-tx notice. */
export function admittedBeef(
  payload: OutputAdmittedByTopic,
  submissions: SubmissionSource | undefined,
): BeefContents {
  if (payload.mode === 'whole-tx') return readBeef(payload.atomicBEEF)
  const beef = submissions?.submitted(payload.txid)
  if (beef === undefined) {
    throw new Error(
      `the notice for ${payload.txid} came without its transaction: this service asks for whole-tx notices`,
    )
  }
  return beef
}

/** The BEEF behind a notice of a spend; undefined where it came without, and the transaction is not being submitted. */
export function spendingBeef(
  payload: OutputSpent,
  submissions: SubmissionSource | undefined,
): BeefContents | undefined {
  if (payload.mode === 'whole-tx') return readBeef(payload.spendingAtomicBEEF)
  return payload.mode === 'none' ? undefined : submissions?.submitted(payload.spendingTxid)
}
