import { StoreUnavailableError } from './errors.js'

/** Reorganisations kept happening during a read, as often as it was retried. */
export class UnstableReadError extends Error {
  override readonly name = 'UnstableReadError'
}

const TRIES = 20

/**
 * Retries a read until no reorganisation happened during it; see `ConsistentReader.consistent`.
 *
 * @param reorgCount How many reorganisations there have been.
 */
export async function optimisticRead<Answer>(
  read: () => Promise<Answer>,
  reorgCount: () => Promise<number>,
): Promise<Answer> {
  let before = await reorgCount()
  for (let tried = 0; tried < TRIES; tried++) {
    const outcome = await outcomeOf(read)
    const after = await reorgCount()
    if (after === before) return outcome()
    before = after
  }
  throw new UnstableReadError(
    `the read was retried ${TRIES} times because the chain kept reorganising; try again`,
  )
}

/**
 * A function that returns or throws what the read did: its error, too, may come from a mix of two states. That the store does not
 * respond is no such error, and asking once more would take as long.
 */
async function outcomeOf<Answer>(read: () => Promise<Answer>): Promise<() => Answer> {
  try {
    const answer = await read()
    return () => answer
  } catch (error) {
    if (error instanceof StoreUnavailableError) throw error
    return () => {
      throw error
    }
  }
}
