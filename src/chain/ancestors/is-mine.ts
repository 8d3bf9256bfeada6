import { setTimeout as sleep } from 'node:timers/promises'

/** How often one looks whether a job has become one's own, in milliseconds. */
const LOOK = 1000

/** Whether a job is to be done by this process: of those that share a store, one does it at a time. */
export type IsMine = () => boolean

/** Resolves when a job is to be done by this process, or a signal is aborted. */
export async function untilMine(isMine: IsMine | undefined, signal: AbortSignal): Promise<void> {
  while (isMine?.() === false && !signal.aborted)
    await sleep(LOOK, undefined, { signal, ref: false }).catch(() => {})
}
