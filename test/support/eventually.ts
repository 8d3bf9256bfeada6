import { setTimeout } from 'node:timers/promises'

/** How long something may take that takes no time but that of a busy machine, in milliseconds. */
const PATIENCE = 90_000

/** Checks over and over until it holds; fails as the last check does. */
export async function eventually(check: () => Promise<void>): Promise<void> {
  for (const until = Date.now() + PATIENCE; ; ) {
    try {
      return await check()
    } catch (error) {
      if (Date.now() > until) throw error
      await setTimeout(50)
    }
  }
}
