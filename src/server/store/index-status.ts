import { NotReadyError } from '../../gateway/http/errors.js'

/** How much of the log the index has. */
export interface IndexStatus {
  /**
   * Being derived, having all facts, or waiting for the thread that writes; of a log that others write, too: not heard of for a while,
   * or for long.
   */
  state: 'rebuilding' | 'equal' | 'resuming' | 'behind' | 'stale'
  /** The share of the log that it has, from 0 to 1. */
  done: number
}

/** The index of a node: whether answers follow from it, and what makes it complete. */
export interface NodeIndex {
  readonly status: IndexStatus
  /** About how many facts are left. */
  lag(): Promise<number>
  /** Makes it complete in the background. */
  start(): void
  /** Makes it complete. */
  run(): Promise<void>
  close(): Promise<void>
}

/** @throws NotReadyError if nothing can be written: during a rebuild, or until the thread that writes was started again. */
export function assertComplete(status: IndexStatus): void {
  const reason = status.state === 'resuming' ? notReadyReason(status) : undefined
  const error = reason === undefined ? incompleteError(status) : new NotReadyError(reason)
  if (error !== undefined) throw error
}

/** The answer while the index is rebuilt, or may lack what others have written; undefined at any other time. */
export function incompleteError(status: IndexStatus): NotReadyError | undefined {
  const reason = notReadyReason(status)
  const isWrong = status.state === 'rebuilding' || status.state === 'stale'
  return isWrong && reason !== undefined ? new NotReadyError(reason) : undefined
}

/** Why a host is not ready, if its index may lack facts. */
export function notReadyReason({ state, done }: IndexStatus): string | undefined {
  if (state === 'rebuilding') return `rebuilding the index: ${Math.ceil((1 - done) * 100)} % left`
  if (state === 'resuming') return 'the thread that writes is started again'
  if (state === 'behind' || state === 'stale') return 'the log cannot be read'
  return undefined
}
