import type { OutputAdmittedByTopic, OutputSpent } from '@bsv/overlay'
import { type BeefContents, readBeef } from '../graph/read-beef.js'

/**
 * The BEEF behind an admission notice.
 *
 * @throws Error where the notice came without its transaction: these services ask for whole-tx notices.
 */
export function admittedBeef(payload: OutputAdmittedByTopic): BeefContents {
  if (payload.mode === 'whole-tx') return readBeef(payload.atomicBEEF)
  throw new Error(`the notice for ${payload.txid} has no transaction: this service needs whole-tx notices`)
}

/** The BEEF behind a notice of a spend; undefined where it came without. */
export function spendingBeef(payload: OutputSpent): BeefContents | undefined {
  return payload.mode === 'whole-tx' ? readBeef(payload.spendingAtomicBEEF) : undefined
}
