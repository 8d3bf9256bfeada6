import { setImmediate } from 'node:timers/promises'

/** How long one write may keep everybody else waiting, in milliseconds. */
const LONGEST = 5
let since = performance.now()

/**
 * Lets others be answered between two statements of a long write, where it has had the thread for a while: the embedded
 * store's statements end before anybody else's turn comes.
 */
export async function rest(): Promise<void> {
  if (performance.now() - since < LONGEST) return
  await setImmediate()
  since = performance.now()
}
