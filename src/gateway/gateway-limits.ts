import { MAX_MAP_BYTES } from '../../backend/src/graph/map-merge.js'

/** What one request may cost (`docs/limits.md`). The two list lengths can only be lowered. */
export interface GatewayLimits {
  /** The most outpoints in one request to `/metadata`. */
  maxPointers: number
  /** The most outpoints in one request to `/origins`. */
  maxOrigins: number
  /** The longest JSON of a directory that paths lead into, in bytes. */
  maxDirectoryBytes: number
  /** The JSON of all directories that one path leads through, in bytes; never less than that of one. */
  maxDirectoryPathBytes: number
  /** The longest query of a lookup, in bytes; a host of an engine answers a longer one itself. */
  maxQueryBytes: number
  /** The BEEF of a page of a lookup, in bytes; a page has at least one output. */
  maxPageBytes: number
  /** How many bytes of MAP a record shows; no more than the default is ever stored. */
  maxMapBytes: number
}

/** The defaults. */
export const GATEWAY_LIMITS: GatewayLimits = {
  maxPointers: 100,
  maxOrigins: 1000,
  maxDirectoryBytes: 1024 * 1024,
  maxDirectoryPathBytes: 2 * 1024 * 1024,
  maxQueryBytes: 128 * 1024,
  maxPageBytes: 1_000_000,
  maxMapBytes: MAX_MAP_BYTES,
}
