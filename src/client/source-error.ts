/** Why an index gave no answer that could be checked. */
export type SourceErrorCode =
  /** It could not be reached, hung up, or sent the question on to somewhere else. */
  | 'UNREACHABLE'
  /** It took longer than the caller waits. */
  | 'TIMEOUT'
  /** Its answer is longer than the caller takes. */
  | 'TOO_LARGE'
  /** It answers something that is no answer to the question. */
  | 'BAD_ANSWER'
  /** It says that the name is claimed, and shows no proof. */
  | 'NO_PROOF'

/** An index that gave no answer that could be checked. The message is one line. */
export class SourceError extends Error {
  override readonly name = 'SourceError'

  constructor(
    readonly code: SourceErrorCode,
    message: string,
    options: { cause?: unknown } = {},
  ) {
    super(message, options)
  }
}
