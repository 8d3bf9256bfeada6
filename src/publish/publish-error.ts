export type PublishErrorCode =
  | 'BAD_LOCK'
  | 'BAD_CONTENT_TYPE'
  | 'BAD_CHUNK_SIZE'
  | 'BAD_FIRST_OUTPUT'
  | 'BAD_NAME'
  | 'NESTING_TOO_DEEP'

/** Something that cannot be laid out so that it reads back; the message is one sentence about what it was. */
export class PublishError extends Error {
  override readonly name = 'PublishError'

  constructor(
    readonly code: PublishErrorCode,
    message: string,
  ) {
    super(message)
  }
}
