import type { OutputAdmittedByTopic } from '../graph/overlay-interfaces.js'

/**
 * The BEEF of an admission.
 *
 * @throws Error if the payload has no transaction: these services ask for whole-tx payloads.
 */
export function admittedBeef(payload: OutputAdmittedByTopic): number[] {
  if (payload.mode === 'whole-tx') return payload.atomicBEEF
  throw new Error(`the notice for ${payload.txid} has no transaction: this service needs whole-tx notices`)
}
