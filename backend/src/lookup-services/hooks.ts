import type { OutputAdmittedByTopic, OutputSpent } from '@bsv/overlay'
import type { GraphStore } from '../graph/graph-store.js'
import type { FailedHook } from '../graph/hook-outbox.js'
import type { GraphRecords } from '../graph/records.js'
import { seenBeefs } from '../graph/seen-beefs.js'
import type { Outpoint } from '../protocol/outpoint.js'
import { HookRetries, type HookRetriesOptions } from './hook-outbox.js'
import { admissionNote, notedAdmission, notedSpend, spendNote } from './outbox-entries.js'

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
