import { z } from 'zod'
import { DEFAULT_SCRIPT_WORK } from '../../../backend/src/protocol/run-scripts.js'
import { GATEWAY_LIMITS } from '../../gateway/gateway-limits.js'
import { ConfigError } from './errors.js'
import { parseSettings, wholeNumber } from './settings.js'

const KiB = 1024
const MiB = 1024 * KiB
const GiB = 1024 * MiB
const {
  maxQueryBytes,
  maxPageBytes,
  maxOrigins,
  maxPointers,
  maxMapBytes,
  maxDirectoryBytes,
  maxDirectoryPathBytes,
} = GATEWAY_LIMITS

/** A limit as a setting: its bounds, and its default. */
interface Limit {
  setting: string
  least: number
  most: number
  usual: number
}

/**
 * What strangers may cost this host: each limit with its setting; `docs/limits.md` gives the reasons. Sizes are in bytes, times
 * in milliseconds, rates in requests a minute. A default that equals the upper bound is the specification's, and can only be
 * lowered.
 */
export const LIMITS = {
  /** The line of a request and its headers. */
  maxHeaderBytes: { setting: 'MAX_HEADER_BYTES', least: KiB, most: MiB, usual: 16 * KiB },
  /** The path of a request with its query. */
  maxPathBytes: { setting: 'MAX_PATH_BYTES', least: 256, most: MiB, usual: 12 * KiB },
  /** The body of `/lookup`. */
  maxQueryBytes: { setting: 'MAX_QUERY_BYTES', least: KiB, most: 16 * MiB, usual: maxQueryBytes },
  /** Off-chain values after the BEEF of a submission. */
  maxOffChainBytes: { setting: 'MAX_OFF_CHAIN_BYTES', least: 0, most: GiB, usual: MiB },
  /** Memory of the bodies that are being received: of all clients, and of one. */
  maxUploadBytes: { setting: 'MAX_UPLOAD_BYTES', least: MiB, most: 64 * GiB, usual: 192 * MiB },
  maxClientUploadBytes: { setting: 'MAX_CLIENT_UPLOAD_BYTES', least: MiB, most: 64 * GiB, usual: 144 * MiB },
  /** The BEEF of a page of `/lookup`; a page has at least one output. */
  // In JSON, a byte has up to four characters: clients of SDK 3 take 4 MiB.
  maxPageBytes: { setting: 'MAX_LOOKUP_BYTES', least: KiB, most: 64 * MiB, usual: maxPageBytes },
  /** Outpoints in one request to `/metadata`. */
  maxPointers: { setting: 'MAX_METADATA_LIST', least: 1, most: 100, usual: maxPointers },
  /** Outpoints in one request to `/origins` or in a query `{origins}`. */
  maxOrigins: { setting: 'MAX_ORIGINS_LIST', least: 1, most: 1000, usual: maxOrigins },
  /** The JSON of a directory. */
  maxDirectoryBytes: { setting: 'MAX_DIRECTORY_BYTES', least: 2, most: 16 * MiB, usual: maxDirectoryBytes },
  /** The JSON of all directories on one path. */
  maxDirectoryPathBytes: {
    setting: 'MAX_DIRECTORY_PATH_BYTES',
    least: 2,
    most: 128 * MiB,
    usual: maxDirectoryPathBytes,
  },
  /** The MAP in a record. */
  maxMapBytes: { setting: 'MAX_MAP_BYTES', least: 4 * KiB, most: 64 * KiB, usual: maxMapBytes },
  maxBeefTransactions: { setting: 'MAX_BEEF_TRANSACTIONS', least: 1, most: 10_000, usual: 2500 },
  /** Inputs and outputs of all transactions of a BEEF. */
  maxBeefParts: { setting: 'MAX_BEEF_PARTS', least: 1, most: 10_000_000, usual: 30_000 },
  /** Transactions of the longest unproven chain in a BEEF. */
  maxBeefDepth: { setting: 'MAX_BEEF_DEPTH', least: 1, most: 10_000, usual: 1000 },
  /** Inputs, and outputs with ordinals, of all unproven transactions of a submission. */
  maxUnprovenParts: { setting: 'MAX_UNPROVEN_PARTS', least: 1, most: 100_000, usual: 5000 },
  /** Inputs of one proven transaction; for others `maxUnprovenParts` applies. */
  maxProvenInputs: { setting: 'MAX_PROVEN_INPUTS', least: 100_000, most: 4_000_000, usual: 300_000 },
  /** A single locking or unlocking script. It may hold content, so the default is that of a body. */
  maxScriptBytes: { setting: 'MAX_SCRIPT_BYTES', least: KiB, most: GiB, usual: 72 * MiB },
  /** What the scripts of a submission may cost, in the units of `RunBudget`: some ten nanoseconds each. */
  maxScriptWork: { setting: 'MAX_SCRIPT_WORK', least: 1_000_000, most: 1e12, usual: DEFAULT_SCRIPT_WORK },
  /** How long verifying a submission may take, with everything that is verified beside it. */
  verificationTimeout: { setting: 'VERIFICATION_TIMEOUT_MS', least: 1, most: 3_600_000, usual: 60_000 },
  /** Blocks that the chain tracker is asked about for one submission. */
  maxTrackerBlocks: { setting: 'MAX_TRACKER_BLOCKS', least: 1, most: 1_000_000, usual: 256 },
  /** Requests to the chain tracker in progress at once. */
  maxTrackerRequests: { setting: 'MAX_TRACKER_REQUESTS', least: 1, most: 1000, usual: 8 },
  /** Submissions in progress and waiting, and the bytes of their bodies. */
  maxSubmissions: { setting: 'MAX_WAITING_SUBMISSIONS', least: 1, most: 100_000, usual: 100 },
  /** Those of one client. */
  maxClientSubmissions: { setting: 'MAX_WAITING_PER_CLIENT', least: 1, most: 100_000, usual: 25 },
  maxSubmissionBytes: { setting: 'MAX_WAITING_BYTES', least: KiB, most: 64 * GiB, usual: 256 * MiB },
  /** What is fetched to place one ordinal: transactions, and their bytes. */
  maxAncestors: { setting: 'MAX_ANCESTORS', least: 1, most: 10_000_000, usual: 20_000 },
  maxAncestorBytes: { setting: 'MAX_ANCESTOR_BYTES', least: 1024, most: 64 * GiB, usual: 256 * MiB },
  /** Stored transactions that nothing admitted depends on: how many, and their bytes. */
  maxPendingTransactions: { setting: 'MAX_PENDING_TRANSACTIONS', least: 0, most: 10_000_000, usual: 100_000 },
  maxPendingBytes: { setting: 'MAX_PENDING_BYTES', least: 0, most: 64 * GiB, usual: 256 * MiB },
  /** Of one client a minute; 0 is no limit. */
  readRate: { setting: 'READS_PER_MINUTE', least: 0, most: 10_000_000, usual: 6000 },
  /** An answer with a BEEF counts as one more read for each so many transactions in it. */
  transactionsPerRead: { setting: 'TRANSACTIONS_PER_READ', least: 1, most: 1_000_000, usual: 100 },
  submissionRate: { setting: 'SUBMISSIONS_PER_MINUTE', least: 0, most: 10_000_000, usual: 600 },
  /** Reads of one client in progress at once; others wait. */
  maxClientReads: { setting: 'MAX_READING_PER_CLIENT', least: 1, most: 100_000, usual: 8 },
  /** Memory of cached answers and content. */
  maxCachedBytes: { setting: 'MAX_CACHED_BYTES', least: MiB, most: 64 * GiB, usual: 64 * MiB },
  /** How many proxies in front of this host are trusted to name the client. */
  trustedProxies: { setting: 'TRUST_PROXY', least: 0, most: 16, usual: 0 },
  /** Domains that are looked up in DNS a minute, and at once. */
  lookupRate: { setting: 'DNS_LOOKUPS_PER_MINUTE', least: 1, most: 1_000_000, usual: 300 },
  maxLookups: { setting: 'MAX_DNS_LOOKUPS', least: 1, most: 1000, usual: 16 },
  /** What a sync requests from a peer for one output that it offers: transactions, and their bytes. */
  maxSyncTransactions: { setting: 'MAX_SYNC_TRANSACTIONS', least: 1, most: 1_000_000, usual: 50_000 },
  maxSyncBytes: { setting: 'MAX_SYNC_BYTES', least: KiB, most: 64 * GiB, usual: 256 * MiB },
  /** How long one response of a peer may take, and all of them for one output. */
  syncTimeout: { setting: 'SYNC_TIMEOUT_MS', least: 1, most: 3_600_000, usual: 30_000 },
  syncGraphTimeout: { setting: 'SYNC_GRAPH_TIMEOUT_MS', least: 1, most: 86_400_000, usual: 600_000 },
  maxConnections: { setting: 'MAX_CONNECTIONS', least: 1, most: 1_000_000, usual: 5000 },
  /** Of one address; 0 is no limit. Not applied behind a proxy. */
  maxClientConnections: { setting: 'MAX_CLIENT_CONNECTIONS', least: 0, most: 1_000_000, usual: 500 },
  /** How long the headers of a request may take to arrive, and all of it. */
  headersTimeout: { setting: 'HEADERS_TIMEOUT_MS', least: 1, most: 3_600_000, usual: 15_000 },
  requestTimeout: { setting: 'REQUEST_TIMEOUT_MS', least: 1, most: 3_600_000, usual: 300_000 },
  /** How long a connection is kept for the next request. */
  keepAliveTimeout: { setting: 'KEEP_ALIVE_TIMEOUT_MS', least: 1, most: 3_600_000, usual: 5000 },
  /** How long a connection may stall while the client should send or read. */
  stallTimeout: { setting: 'STALL_TIMEOUT_MS', least: 1, most: 3_600_000, usual: 60_000 },
} as const satisfies Record<string, Limit>

export type Limits = Record<keyof typeof LIMITS, number>

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
 * @throws ConfigError that names the first invalid one.
 */
export function readLimits(set: Record<string, unknown>): Limits {
  const settings = parseSettings(schema, set)
  const limits = Object.fromEntries(
    Object.entries(LIMITS).map(([name, { setting }]) => [name, settings[setting]]),
  ) as Limits
  if (limits.headersTimeout > limits.requestTimeout)
    throw new ConfigError('HEADERS_TIMEOUT_MS: must not exceed REQUEST_TIMEOUT_MS')
  return limits
}
