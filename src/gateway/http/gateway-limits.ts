import { MAX_MAP_BYTES } from '../../../backend/src/graph/map-merge.js'

/** What one request may cost (`docs/limits.md`). Of the two lists, more than the usual is never taken. */
export interface GatewayLimits {
  /** How many outpoints `/metadata` takes at once. */
  maxPointers: number
  /** How many `/origins` takes at once. */
  maxOrigins: number
  /** The longest JSON of a directory that paths lead into, in bytes. */
  maxDirectoryBytes: number
  /** The JSON of all directories that one path leads through, in bytes; never less than that of one. */
  maxDirectoryPathBytes: number
  /** How many bytes of MAP a record shows: more than the usual is never kept. */
  maxMapBytes: number
}

/** What they are where nobody says otherwise. */
export const GATEWAY_LIMITS: GatewayLimits = {
  maxPointers: 100,
  maxOrigins: 1000,
  maxDirectoryBytes: 1024 * 1024,
  maxDirectoryPathBytes: 2 * 1024 * 1024,
  maxMapBytes: MAX_MAP_BYTES,
}
