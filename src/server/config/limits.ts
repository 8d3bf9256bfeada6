import { z } from 'zod'
import { DEFAULT_SCRIPT_WORK } from '../../../backend/src/protocol/run-scripts.js'
import { GATEWAY_LIMITS } from '../../gateway/gateway-options.js'
import { parseSettings, wholeNumber } from './settings.js'

const KiB = 1024
const MiB = 1024 * KiB
const GiB = 1024 * MiB

interface Limit {
  setting: string
  least: number
  most: number
  usual: number
}

/**
 * Limits on the resources that strangers may use, each with its setting; `docs/settings.md` gives the reasons. Sizes are in
 * bytes, times in milliseconds, rates in requests a minute. A default that equals the upper bound is the specification's, and can
 * only be lowered. All other limits are derived from these ({@link derivedLimits}).
 */
export const LIMITS = {
  /** Memory for bodies being received, and answers waiting to be read. */
  maxUploadBytes: { setting: 'MAX_UPLOAD_BYTES', least: MiB, most: 64 * GiB, usual: 192 * MiB },
  maxDirectoryBytes: {
    setting: 'MAX_DIRECTORY_BYTES',
    least: 2,
    most: 16 * MiB,
    usual: GATEWAY_LIMITS.maxDirectoryBytes,
  },
  maxMapBytes: {
    setting: 'MAX_MAP_BYTES',
    least: 4 * KiB,
    most: 64 * KiB,
    usual: GATEWAY_LIMITS.maxMapBytes,
  },
  maxBeefTransactions: { setting: 'MAX_BEEF_TRANSACTIONS', least: 1, most: 10_000, usual: 2500 },
  /** The cost of a submission's scripts, in the units of `RunBudget`: some ten nanoseconds each. */
  maxScriptWork: { setting: 'MAX_SCRIPT_WORK', least: 1_000_000, most: 1e12, usual: DEFAULT_SCRIPT_WORK },
  /** Submissions in progress and waiting. */
  maxSubmissions: { setting: 'MAX_WAITING_SUBMISSIONS', least: 1, most: 100_000, usual: 100 },
  /** Transactions fetched from chain sources to place one output, and bytes fetched from those or a peer. */
  maxAncestors: { setting: 'MAX_ANCESTORS', least: 1, most: 10_000_000, usual: 20_000 },
  maxAncestorBytes: { setting: 'MAX_ANCESTOR_BYTES', least: KiB, most: 64 * GiB, usual: 256 * MiB },
  /** The bytes of stored transactions that nothing admitted depends on. */
  maxPendingBytes: { setting: 'MAX_PENDING_BYTES', least: 0, most: 64 * GiB, usual: 256 * MiB },
  /** Requests of one client a minute; 0 is no limit. */
  readRate: { setting: 'READS_PER_MINUTE', least: 0, most: 10_000_000, usual: 6000 },
  submissionRate: { setting: 'SUBMISSIONS_PER_MINUTE', least: 0, most: 10_000_000, usual: 600 },
  /** Memory of cached answers and content. */
  maxCachedBytes: { setting: 'MAX_CACHED_BYTES', least: MiB, most: 64 * GiB, usual: 64 * MiB },
  /** Disk space for converted images; 0: none are made. */
  maxImageCacheBytes: { setting: 'MAX_IMAGE_CACHE_BYTES', least: 0, most: 1024 * GiB, usual: 256 * MiB },
  /** How many proxies in front of this host are trusted to name the client. */
  trustedProxies: { setting: 'TRUST_PROXY', least: 0, most: 16, usual: 0 },
  /** DNS lookups of domains a minute. */
  lookupRate: { setting: 'DNS_LOOKUPS_PER_MINUTE', least: 1, most: 1_000_000, usual: 300 },
  /** How long one response of a peer may take. */
  syncTimeout: { setting: 'SYNC_TIMEOUT_MS', least: 1, most: 3_600_000, usual: 30_000 },
  maxConnections: { setting: 'MAX_CONNECTIONS', least: 1, most: 1_000_000, usual: 5000 },
  /** Connections of one address; 0 is no limit. Not applied behind a proxy. */
  maxClientConnections: { setting: 'MAX_CLIENT_CONNECTIONS', least: 0, most: 1_000_000, usual: 500 },
  /** How long a whole request may take to arrive. */
  requestTimeout: { setting: 'REQUEST_TIMEOUT_MS', least: 20, most: 3_600_000, usual: 300_000 },
  /** How long a connection is kept for the next request. */
  keepAliveTimeout: { setting: 'KEEP_ALIVE_TIMEOUT_MS', least: 1, most: 3_600_000, usual: 5000 },
} as const satisfies Record<string, Limit>

type LimitSettings = Record<keyof typeof LIMITS, number>

/** The mean size in bytes of a pending transaction at which both limits on them are reached together. */
const PENDING_BYTES = 2684

/**
 * The other limits, as `docs/settings.md` explains: each is proportional to a setting, or fixed.
 *
 * @param maxBodyBytes The largest body of a submission.
 */
function derivedLimits(set: LimitSettings, maxBodyBytes: number) {
  return {
    /** The line of a request and its headers. */
    maxHeaderBytes: 16 * KiB,
    /** The path of a request with its query. */
    maxPathBytes: 12 * KiB,
    /** The BEEF of a page of `/lookup`; a page has at least one output. */
    maxPageBytes: GATEWAY_LIMITS.maxPageBytes,
    /** The share of one client in the memory of bodies and answers: two of the largest bodies. */
    maxClientUploadBytes: Math.ceil((set.maxUploadBytes * 3) / 4),
    /** The bodies of waiting submissions. */
    maxSubmissionBytes: Math.ceil((set.maxUploadBytes * 4) / 3),
    /** Waiting submissions of one client. */
    maxClientSubmissions: Math.ceil(set.maxSubmissions / 4),
    /** Inputs of one proven transaction. */
    maxProvenInputs: 300_000,
    /** Inputs and outputs of all unproven transactions of a BEEF. */
    maxBeefParts: set.maxBeefTransactions * 12,
    /** Transactions of the longest unproven chain in a BEEF. */
    maxBeefDepth: Math.ceil((set.maxBeefTransactions * 2) / 5),
    /** Inputs, and outputs with ordinals, of all unproven transactions of a submission. */
    maxUnprovenParts: set.maxBeefTransactions * 2,
    /** A single script of an unproven transaction: it may hold content. */
    maxScriptBytes: maxBodyBytes,
    /** How long verifying a submission may take, along with those that are verified in parallel. */
    verificationTimeout: 60_000,
    /** Blocks that the chain tracker is asked about for one submission. */
    maxTrackerBlocks: 256,
    maxPendingTransactions: Math.floor(set.maxPendingBytes / PENDING_BYTES),
    /** Transactions that a sync requests from a peer for one offered output. */
    maxSyncTransactions: Math.ceil((set.maxAncestors * 5) / 2),
    /** How long all responses of a peer for one output may take. */
    syncGraphTimeout: set.syncTimeout * 20,
    /** Reads of one client in progress at once; others wait. */
    maxClientReads: 8,
    /** How long the headers of a request may take to arrive. */
    headersTimeout: Math.ceil(set.requestTimeout / 20),
    /** How long a connection may stall while the client should send or read. */
    stallTimeout: Math.ceil(set.requestTimeout / 5),
  }
}

export type Limits = LimitSettings & ReturnType<typeof derivedLimits>

const schema = z.object(
  Object.fromEntries(
    Object.values(LIMITS).map(({ setting, least, most, usual }) => [
      setting,
      wholeNumber(least, most).default(usual),
    ]),
  ),
)

/**
 * Reads the limits.
 *
 * @param options.maxBodyBytes The largest body of a submission, which is a setting as well.
 * @throws ConfigError that names the first invalid one.
 */
export function readLimits(set: Record<string, unknown>, options: { maxBodyBytes: number }): Limits {
  const settings = parseSettings(schema, set)
  const limits = Object.fromEntries(
    Object.entries(LIMITS).map(([name, { setting }]) => [name, settings[setting]]),
  ) as LimitSettings
  return { ...limits, ...derivedLimits(limits, options.maxBodyBytes) }
}
