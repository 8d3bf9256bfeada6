import { setTimeout } from 'node:timers/promises'

/** How long a busy machine may take, in milliseconds, for something that takes no time by itself. */
const PATIENCE = 240_000
/** How long until it is looked at again, in milliseconds: soon at first, and seldom at last, as looking takes time from others. */
const [FIRST_PAUSE, LAST_PAUSE] = [5, 100]
const longer = (pause: number): number => Math.min(1.5 * pause, LAST_PAUSE)

/** Checks again and again until it holds; fails as the last check does. */
export async function eventually(check: () => Promise<void>): Promise<void> {
  const end = Date.now() + PATIENCE
  for (let pause = FIRST_PAUSE; ; pause = longer(pause)) {
    try {
      return await check()
    } catch (error) {
      if (Date.now() > end) throw error
      await setTimeout(pause)
    }
  }
}

/** Waits until something is so, and gives it; fails where it never is. `what` says what is waited for. */
export async function until<Found>(
  find: () => Found | Promise<Found>,
  what = find.toString(),
): Promise<NonNullable<Found>> {
  const end = Date.now() + PATIENCE
  for (let pause = FIRST_PAUSE; Date.now() < end; pause = longer(pause)) {
    const found = await find()
    if (found) return found
    await setTimeout(pause)
  }
  throw new Error(`it never came to be: ${what}`)
}

/**
 * Tries with more and more time, for what is slow on a busy machine and right whenever there is time enough. What fails long before
 * its time is over had enough of it, and is wrong.
 *
 * @param least The first timeout, in milliseconds.
 */
export async function givenTime<Found>(
  least: number,
  attempt: (timeout: number) => Promise<Found>,
): Promise<Found> {
  for (let timeout = least; 4 * timeout <= PATIENCE; timeout *= 4) {
    const began = performance.now()
    try {
      return await attempt(timeout)
    } catch (error) {
      if (performance.now() - began < timeout / 10) throw error
    }
  }
  return await attempt(PATIENCE)
}

/** What waits this long waits for something that may be slow, in milliseconds: it is not to give up sooner. */
const A_LIMIT = 5000

/** Has time pass for what measures durations: until a suite ends, their clock is so many milliseconds ahead. */
export function passTime(milliseconds: number): void {
  const now = performance.now.bind(performance)
  performance.now = () => now() + milliseconds
}

/** For this suite, the clock of durations runs so many times as fast, and pauses end as much sooner. */
export function hurry(times: number): void {
  const [{ setTimeout: sleep }, now] = [globalThis, performance.now.bind(performance)]
  const since = now()
  performance.now = () => since + times * (now() - since)
  const sooner = (run: () => void, pause = 0) => sleep(run, pause < A_LIMIT ? pause / times : pause)
  globalThis.setTimeout = Object.assign(sooner, sleep)
}

const TURNS = 20

/**
 * Lets this process hear what the network has for it by now, as that a client has left. Counted in turns of its loop, each
 * of which asks the network: how long one takes is the machine's to say.
 */
export async function loopTurns(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn++) await setTimeout(5)
}
