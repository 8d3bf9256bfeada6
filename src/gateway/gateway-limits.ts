import { MAX_MAP_BYTES } from '../../backend/src/graph/map-merge.js'

/** What one request may cost (`docs/settings.md`). */
export interface GatewayLimits {
  /** The longest JSON of a directory that paths lead into, in bytes; those on one path may have twice as much together. */
  maxDirectoryBytes: number
  /** The longest body that a patch may make, in bytes: as of content that is inscribed whole. */
  maxContentBytes: number
  /** The BEEF of a page of a lookup, in bytes; a page has at least one output. In JSON it is four times as long. */
  maxPageBytes: number
  /** How many bytes of MAP a record shows; no more than the default is ever stored. */
  maxMapBytes: number
}

export const GATEWAY_LIMITS: GatewayLimits = {
  maxDirectoryBytes: 1024 * 1024,
  maxContentBytes: 64 * 1024 * 1024,
  // Clients of SDK 3 take 4 MiB of JSON.
  maxPageBytes: 1_000_000,
  maxMapBytes: MAX_MAP_BYTES,
}
