export interface ErrorDetails {
  cause?: unknown
  data?: Readonly<Record<string, unknown>>
}

/**
 * Base class of every error that callers tell apart by its code, never by its message. The message is one line that
 * quotes what was wrong.
 *
 * Each class spells its `name` out: bundlers rename classes, and an error from a worker thread arrives as plain data.
 */
export abstract class CodedError<Code extends string = string> extends Error {
  abstract override readonly name: string
  abstract readonly code: Code
  /** More facts for programs; anything that JSON can hold. */
  declare readonly data?: Readonly<Record<string, unknown>>

  constructor(message: string, { cause, data }: ErrorDetails = {}) {
    super(message, cause === undefined ? undefined : { cause })
    if (data !== undefined) this.data = data
  }
}

/** An error that only its code identifies; also the base class of errors with several codes. */
export class GeneralError<Code extends string = string> extends CodedError<Code> {
  override readonly name: string = 'GeneralError'

  constructor(
    readonly code: Code,
    message: string,
    details?: ErrorDetails,
  ) {
    super(message, details)
  }
}

/** The message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
