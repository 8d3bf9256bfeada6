/** How a source of the chain is doing. */
export interface SourceStatus {
  /** Its kind and the origin of its URL, without keys. */
  name: string
  state: 'ok' | 'resting'
  requests: number
  failures: number
  /** In milliseconds since 1970. */
  restingUntil?: number
  lastError?: { at: number; message: string }
}
