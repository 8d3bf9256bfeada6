import type { OutputAdmittedByTopic, OutputSpent } from '@bsv/overlay'
import type { GraphStore } from '../graph/graph-store.js'
import type { FailedHook } from '../graph/hook-outbox.js'
import { type BeefContents, readBeef, seenBeefs } from '../graph/read-beef.js'
import type { GraphRecords } from '../graph/records.js'
import type { Outpoint } from '../protocol/outpoint.js'
import { HookRetries, type HookRetriesOptions } from './hook-retries.js'

/** Where what a hook could not do is remembered, and when it is repeated. */
export type Retrying = Pick<HookRetriesOptions, 'notes' | 'turn' | 'repeats' | 'onHookFailure' | 'times'>

export interface HooksOptions {
  service: string
  /** What the hooks do. */
  admit: (payload: OutputAdmittedByTopic) => Promise<void>
  evict: (outpoint: Outpoint) => Promise<void>
  spend?: (payload: OutputSpent) => Promise<void>
  remembering: Retrying | undefined
}

/** Writes records, and all that follows from them: no host calls again for what one write leaves to the next. */
export async function recordAll(
  writer: Pick<GraphStore, 'record' | 'backlog'>,
  records: GraphRecords,
): Promise<void> {
  await writer.record(records)
  while (await writer.backlog.workOff()) {
    // Each call does a part of it.
  }
}

/** The hooks of a lookup service, each of them remembered where it fails. */
export class Hooks {
  private readonly failed: HookRetries | undefined

  constructor(private readonly options: HooksOptions) {
    const { service, remembering } = options
    this.failed =
      remembering && new HookRetries({ ...remembering, service, repeat: (note) => this.repeat(note) })
  }

  async admitted(told: OutputAdmittedByTopic): Promise<void> {
    const payload = told.mode === 'whole-tx' ? { ...told, atomicBEEF: whole(told.atomicBEEF) } : told
    const { service, admit } = this.options
    await this.run(
      () => admissionNote(service, payload),
      () => admit(payload),
    )
  }

  async spent(told: OutputSpent): Promise<void> {
    const payload =
      told.mode === 'whole-tx' ? { ...told, spendingAtomicBEEF: whole(told.spendingAtomicBEEF) } : told
    const { service, spend } = this.options
    await this.run(
      () => spendNote(service, payload),
      async () => await spend?.(payload),
    )
  }

  async evicted(outpoint: Outpoint): Promise<void> {
    const { service, evict } = this.options
    await this.run(
      () => ({ service, hook: 'evicted', outpoint }),
      () => evict(outpoint),
    )
  }

  async close(): Promise<void> {
    await this.failed?.close()
  }

  private async run(noteOf: () => FailedHook, work: () => Promise<void>): Promise<void> {
    const { failed } = this
    if (failed === undefined) await work()
    else await failed.run(noteOf, work)
  }

  private async repeat(note: FailedHook): Promise<void> {
    const { admit, spend, evict } = this.options
    if (note.hook === 'admitted') await admit(notedAdmission(note))
    else if (note.hook === 'spent') await spend?.(notedSpend(note))
    else await evict(note.outpoint)
  }
}

/** With all that came, and not only what the engine makes of it. It declares numbers; whoever reads a BEEF takes bytes as well. */
function whole(beef: number[]): number[] {
  return seenBeefs.whole(beef) as number[]
}

/**
 * The BEEF behind an admission notice.
 *
 * @throws Error where the notice came without its transaction: these services ask for whole-tx notices.
 */
export function admittedBeef(payload: OutputAdmittedByTopic): BeefContents {
  if (payload.mode === 'whole-tx') return readBeef(payload.atomicBEEF)
  throw new Error(
    `the notice for ${payload.txid} came without its transaction: this service asks for whole-tx notices`,
  )
}

/** The BEEF behind a notice of a spend; undefined where it came without. */
export function spendingBeef(payload: OutputSpent): BeefContents | undefined {
  return payload.mode === 'whole-tx' ? readBeef(payload.spendingAtomicBEEF) : undefined
}

/** The engine's notices as notes, and back: whole transactions, whatever mode they came in. */

/** @throws Error where the notice came without its transaction, which the host has to have then. */
export function admissionNote(service: string, payload: OutputAdmittedByTopic): FailedHook {
  if (payload.mode !== 'whole-tx')
    throw new Error('a notice without its transaction cannot be acted on later')
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
  if (payload.mode === 'none')
    throw new Error('a notice that does not say what spends cannot be acted on later')
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
