import type { OutputAdmittedByTopic } from '@bsv/overlay'
import type { HookNote } from '../graph/hook-note.js'
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

/** An admission notice with what it takes to act on it later. @throws Error where it came without its transaction. */
export function admissionNote(service: string, payload: OutputAdmittedByTopic): HookNote {
  if (payload.mode !== 'whole-tx')
    throw new Error('a notice without its transaction cannot be acted on later')
  const { topic, outputIndex: vout } = payload
  const { txid } = readBeef(payload.atomicBEEF).subject
  return {
    service,
    hook: 'admitted',
    topic,
    outpoint: { txid, vout },
    beef: Uint8Array.from(payload.atomicBEEF),
  }
}

/** The payload of an admission that is repeated. */
export function notedAdmission(note: HookNote & { hook: 'admitted' }): OutputAdmittedByTopic {
  const { topic, outpoint, beef } = note
  // The engine declares an array of numbers; whoever reads a BEEF here takes its bytes as well.
  const atomicBEEF = beef as unknown as number[]
  return { mode: 'whole-tx', topic, outputIndex: outpoint.vout, atomicBEEF }
}
