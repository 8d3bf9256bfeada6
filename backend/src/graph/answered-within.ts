/**
 * Waits for an answer, but no longer than so many milliseconds.
 *
 * @param late.error Makes the error that is thrown if the answer is late.
 * @param late.giveUp Called with that error, to end the request.
 */
export async function answeredWithin<Answer>(
  milliseconds: number,
  ask: () => Promise<Answer>,
  late: { error: () => Error; giveUp?: (error: Error) => unknown },
): Promise<Answer> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      const error = late.error()
      reject(error)
      late.giveUp?.(error)
    }, milliseconds)
  })
  try {
    return await Promise.race([ask(), timeout])
  } finally {
    clearTimeout(timer)
  }
}
