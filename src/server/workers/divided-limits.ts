import type { Limits } from '../config/limits.js'

const KiB = 1024

/**
 * The limits of the processes of a host, so that together they keep to the host's: the memory of caches is divided among all of
 * them, and connections, bodies and concurrent reads among the readers, rounded up. Rates are counted together.
 */
export function dividedLimits(limits: Limits, readers: number): { writer: Limits; reader: Limits } {
  const maxCachedBytes = KiB * Math.floor(limits.maxCachedBytes / (readers + 1) / KiB)
  const share = (limit: number): number => Math.ceil(limit / readers)
  return {
    writer: { ...limits, maxCachedBytes },
    reader: {
      ...limits,
      maxCachedBytes,
      maxConnections: share(limits.maxConnections),
      maxClientConnections: share(limits.maxClientConnections),
      maxClientReads: share(limits.maxClientReads),
      // Each has what it looked up for itself.
      lookupRate: share(limits.lookupRate),
      maxLookups: share(limits.maxLookups),
      maxUploadBytes: share(limits.maxUploadBytes),
      maxClientUploadBytes: share(limits.maxClientUploadBytes),
    },
  }
}
