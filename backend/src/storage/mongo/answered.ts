/**
 * How long a call may take, in milliseconds: who asks is told to try again after that. Less than the lease of a writer.
 *
 * The driver has no end of its own for a call whose connection is closed while it is sent: it waits for a socket to take
 * more that is gone, whatever it is told of time limits.
 */
const WITHIN = 8000

/** A call was given up as no answer came: it may have taken effect, or take it yet. */
export class UnansweredError extends Error {
  override readonly name = 'UnansweredError'
}

/**
 * Makes a call to a database that ends in time.
 *
 * @param call Hands on what it is given to the driver, among its options: so that it lets go of the connection.
 * @throws UnansweredError where no answer came, and what the driver throws.
 */
export async function answered<Result>(
  call: (options: { signal: AbortSignal }) => Promise<Result>,
): Promise<Result> {
  const waiting = new AbortController()
  const { signal } = waiting
  let timer: NodeJS.Timeout | undefined
  const givenUp = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      const error = new UnansweredError(`the database did not respond within ${WITHIN} ms`)
      reject(error)
      waiting.abort(error)
    }, WITHIN)
  })
  try {
    return await Promise.race([call({ signal }), givenUp])
  } finally {
    clearTimeout(timer)
  }
}
