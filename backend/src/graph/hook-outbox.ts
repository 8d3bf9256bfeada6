import type { Outpoint } from '../protocol/outpoint.js'

/**
 * A notice of the engine that a lookup service could not act on, with all that it takes to act on it later. The engine
 * logs what a lookup service throws and forgets it, while the transaction counts as applied: a second submission is a
 * duplicate (`spec/overlay.md`, gap 2). So the note is the only thing that remembers.
 */
export type FailedHook = {
  /** The lookup service that failed, as `ls_names`. */
  service: string
  outpoint: Outpoint
} & (
  | {
      hook: 'admitted'
      topic: string
      /** The transaction with its ancestors, as the engine gave it. */
      beef: Uint8Array
    }
  /** `beef` as with an admission, of the spender: where the engine told of it, or the host had it. */
  | { hook: 'spent'; topic: string; spender: string; beef?: Uint8Array }
  | { hook: 'evicted' }
)

/** Keeps notes until what they are about is done. */
export interface HookOutbox {
  /** Keeps a note; one about the same thing is kept once. */
  keep(note: FailedHook): Promise<void>
  /** The notes of a service, read one at a time, each once; those that come or go meanwhile may be among them or not. */
  kept(service: string): AsyncIterable<FailedHook>
  /** Lets go of a note. */
  release(note: FailedHook): Promise<void>
}

/** What a note is about, as text: two notes with the same are one. */
export function subjectOf(note: FailedHook): string {
  const { service, hook, outpoint } = note
  const topic = hook === 'evicted' ? '' : note.topic
  const spender = hook === 'spent' ? note.spender : ''
  return [service, hook, topic, outpoint.txid, outpoint.vout, spender].join(' ')
}

/** The BEEF that a note keeps; undefined where it has none. */
export function noteBeef(note: FailedHook): Uint8Array | undefined {
  return note.hook === 'evicted' ? undefined : note.beef
}
