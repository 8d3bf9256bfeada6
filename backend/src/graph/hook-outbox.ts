import type { Outpoint } from '../protocol/outpoint.js'

/**
 * A call of the engine to a lookup service that failed, with everything needed to retry it. The engine logs the error and
 * drops it, while the transaction counts as applied: a second submission is a duplicate (`spec/overlay.md`, gap 2). So this
 * record is the only one.
 */
export type FailedHook = {
  /** The lookup service that failed, as `ls_names`. */
  service: string
  outpoint: Outpoint
} & (
  | {
      hook: 'admitted'
      topic: string
      /** The transaction with its ancestors, as the engine passed it. */
      beef: Uint8Array
    }
  /** `beef` is that of the spender, if the engine passed it or the host had it. */
  | { hook: 'spent'; topic: string; spender: string; beef?: Uint8Array }
  | { hook: 'evicted' }
)

/** Failed hooks, kept until a retry succeeds. */
export interface HookOutbox {
  /** Keeps a failed hook; the same one is kept once. */
  keep(hook: FailedHook): Promise<void>
  /** Those of a service, each once; ones that are added or released meanwhile may or may not be included. */
  kept(service: string): AsyncIterable<FailedHook>
  /** Deletes one. */
  release(hook: FailedHook): Promise<void>
}

/** An outbox in a database that has to be opened first. */
export function openedOutbox(open: () => Promise<void>, outbox: HookOutbox): HookOutbox {
  return {
    async keep(hook) {
      await open()
      await outbox.keep(hook)
    },
    async *kept(service) {
      await open()
      yield* outbox.kept(service)
    },
    async release(hook) {
      await open()
      await outbox.release(hook)
    },
  }
}

/** Identifies a failed hook: two with the same subject are one. */
export function subjectOf(failed: FailedHook): string {
  const { service, hook, outpoint } = failed
  const topic = hook === 'evicted' ? '' : failed.topic
  const spender = hook === 'spent' ? failed.spender : ''
  return [service, hook, topic, outpoint.txid, outpoint.vout, spender].join(' ')
}

/** The BEEF kept with a failed hook; undefined if there is none. */
export function beefOfHook(failed: FailedHook): Uint8Array | undefined {
  return failed.hook === 'evicted' ? undefined : failed.beef
}
