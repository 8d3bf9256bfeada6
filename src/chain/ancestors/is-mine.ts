import { setTimeout as sleep } from 'node:timers/promises'

/** How often to check whether a job has become this process's, in milliseconds. */
const LOOK = 1000

/** Whether this process does a job: of those that share a store, one does it at a time. */
export type IsMine = () => boolean

/** Resolves when a job is this process's, or a signal is aborted. */
export async function untilMine(isMine: IsMine | undefined, signal: AbortSignal): Promise<void> {
  while (isMine?.() === false && !signal.aborted)
    await sleep(LOOK, undefined, { signal, ref: false }).catch(() => {})
}
