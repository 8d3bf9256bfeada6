import { setTimeout } from 'node:timers/promises'

const TURNS = 20

/**
 * Lets this process hear what the network has for it by now, as that a client has left. Counted in turns of its loop, each
 * of which asks the network: how long one takes is the machine's to say.
 */
export async function loopTurns(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn++) await setTimeout(5)
}
