import type { OutputAdmittedByTopic, OutputSpent } from '@bsv/overlay'
import type { FailedHook } from '../graph/hook-outbox.js'
import { readBeef } from '../graph/read-beef.js'

/** The engine's notices as notes, and back: whole transactions, whatever mode they came in. */

/** @throws Error where the notice came without its transaction, which the host has to have then. */
export function admissionNote(service: string, payload: OutputAdmittedByTopic): FailedHook {
  if (payload.mode !== 'whole-tx') throw new Error('a notice without its transaction cannot be retried')
  const { topic, outputIndex: vout, atomicBEEF } = payload
  const { txid } = readBeef(atomicBEEF).subject
  return { service, hook: 'admitted', topic, outpoint: { txid, vout }, beef: Uint8Array.from(atomicBEEF) }
}

/** @throws Error for a notice of a mode that does not say what spends. */
export function spendNote(service: string, payload: OutputSpent): FailedHook {
  const { topic, txid, outputIndex: vout } = payload
  const spent = { service, hook: 'spent', topic, outpoint: { txid, vout } } as const
  if (payload.mode === 'whole-tx') {
    const { spendingAtomicBEEF } = payload
    const spender = readBeef(spendingAtomicBEEF).subject.txid
    return { ...spent, spender, beef: Uint8Array.from(spendingAtomicBEEF) }
  }
  if (payload.mode === 'none') throw new Error('a notice without the spending txid cannot be retried')
  return { ...spent, spender: payload.spendingTxid }
}

export function notedAdmission({
  topic,
  outpoint,
  beef,
}: FailedHook & { hook: 'admitted' }): OutputAdmittedByTopic {
  return { mode: 'whole-tx', topic, outputIndex: outpoint.vout, atomicBEEF: numbersOf(beef) }
}

export function notedSpend({ topic, outpoint, spender, beef }: FailedHook & { hook: 'spent' }): OutputSpent {
  const spent = { topic, txid: outpoint.txid, outputIndex: outpoint.vout }
  if (beef === undefined) return { ...spent, mode: 'txid', spendingTxid: spender }
  return { ...spent, mode: 'whole-tx', spendingAtomicBEEF: numbersOf(beef) }
}

/** The engine declares arrays of numbers; whoever reads a BEEF here takes its bytes as well. */
function numbersOf(beef: Uint8Array): number[] {
  return beef as unknown as number[]
}
