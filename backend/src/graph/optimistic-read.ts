/** What was read turned while it was read, as often as it was tried again. */
export class UnstableReadError extends Error {
  override readonly name = 'UnstableReadError'
}

const TRIES = 20

/**
 * Reads until nothing has turned meanwhile; see `ConsistentReader.consistent`.
 *
 * @param turns How often something has turned by now.
 */
export async function optimisticRead<Answer>(
  read: () => Promise<Answer>,
  turns: () => Promise<number>,
): Promise<Answer> {
  let before = await turns()
  for (let tried = 0; tried < TRIES; tried++) {
    const answer = await settle(read)
    const after = await turns()
    if (after === before) return answer()
    before = after
  }
  throw new UnstableReadError(
    `the read was retried ${TRIES} times because the chain kept reorganising; try again`,
  )
}

/** What came of it, as something that gives or throws it: an error may be of a state that never was. */
async function settle<Answer>(read: () => Promise<Answer>): Promise<() => Answer> {
  try {
    const answer = await read()
    return () => answer
  } catch (error) {
    return () => {
      throw error
    }
  }
}
