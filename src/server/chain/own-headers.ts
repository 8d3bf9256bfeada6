import type { SourceStatus } from '../../follow/chain-sources.js'

export interface HeadersStatus {
  /** The tip. */
  height?: number
  hash?: string
  time?: number
  /** The lowest height. */
  from?: number
  lastError?: { at: number; message: string }
  sources?: SourceStatus[]
}
