import { z } from 'zod'
import { DEFAULT_SCRIPT_WORK } from '../../../backend/src/protocol/script-cost.js'
import { GATEWAY_LIMITS } from '../../gateway/gateway-limits.js'
import { ConfigError } from './config-error.js'
import { parseSettings, wholeNumber } from './parse-settings.js'

const KiB = 1024
const MiB = 1024 * KiB

/** A limit as a setting: what it may be, and what it is where nobody has set it. */
interface Limit {
  setting: string
  least: number
  most: number
  usual: number
}

/**
 * What strangers may cost this host, each limit with its setting; `docs/limits.md` gives each its reason. Sizes are in
 * bytes, times in milliseconds, rates in requests a minute. Where the most is the usual, the number is the
 * specification's, and an operator can only go below it.
 */
export const LIMITS = {
  /** The line of a request and its headers. */
  maxHeaderBytes: { setting: 'MAX_HEADER_BYTES', least: KiB, most: MiB, usual: 16 * KiB },
  /** The path of a request with its query. */
  maxPathBytes: { setting: 'MAX_PATH_BYTES', least: 256, most: MiB, usual: 12 * KiB },
  /** The body of `/lookup`. */
  maxQueryBytes: { setting: 'MAX_QUERY_BYTES', least: KiB, most: 16 * MiB, usual: 128 * KiB },
  /** What may stand behind the BEEF of a submission. */
  maxOffChainBytes: { setting: 'MAX_OFF_CHAIN_BYTES', least: 0, most: KiB * MiB, usual: MiB },
  /** What the bodies hold that are being read: of all clients, and of one. */
  maxUploadBytes: { setting: 'MAX_UPLOAD_BYTES', least: MiB, most: 64 * KiB * MiB, usual: 192 * MiB },
  maxClientUploadBytes: {
    setting: 'MAX_CLIENT_UPLOAD_BYTES',
    least: MiB,
    most: 64 * KiB * MiB,
    usual: 144 * MiB,
  },
  /** The BEEF of a page that `/lookup` answers with, as long as it has one output. */
  maxPageBytes: { setting: 'MAX_LOOKUP_BYTES', least: KiB, most: 64 * MiB, usual: MiB },
  /** How many outpoints `/metadata` takes at once. */
  maxPointers: { setting: 'MAX_METADATA_LIST', least: 1, most: 100, usual: GATEWAY_LIMITS.maxPointers },
  /** How many `/origins` and the query `{origins}` take at once. */
  maxOrigins: { setting: 'MAX_ORIGINS_LIST', least: 1, most: 1000, usual: GATEWAY_LIMITS.maxOrigins },
  /** The JSON of a directory that paths lead into. */
  maxDirectoryBytes: {
    setting: 'MAX_DIRECTORY_BYTES',
    least: 2,
    most: 16 * MiB,
    usual: GATEWAY_LIMITS.maxDirectoryBytes,
  },
  /** The JSON of all directories that one path leads through. */
  maxDirectoryPathBytes: {
    setting: 'MAX_DIRECTORY_PATH_BYTES',
    least: 2,
    most: 128 * MiB,
    usual: GATEWAY_LIMITS.maxDirectoryPathBytes,
  },
  /** The MAP that a record shows. */
  maxMapBytes: {
    setting: 'MAX_MAP_BYTES',
    least: 4 * KiB,
    most: 64 * KiB,
    usual: GATEWAY_LIMITS.maxMapBytes,
  },
  maxBeefTransactions: { setting: 'MAX_BEEF_TRANSACTIONS', least: 1, most: 10_000, usual: 2500 },
  /** Inputs and outputs of all transactions of a BEEF. */
  maxBeefParts: { setting: 'MAX_BEEF_PARTS', least: 1, most: 10_000_000, usual: 30_000 },
  /** Transactions of the longest unproven chain in a BEEF. */
  maxBeefDepth: { setting: 'MAX_BEEF_DEPTH', least: 1, most: 10_000, usual: 1000 },
  /** Inputs, or outputs, of one transaction. */
  maxParts: { setting: 'MAX_TRANSACTION_PARTS', least: 1, most: 100_000, usual: 10_000 },
  /** Inputs of one transaction that is proven. Others have `maxParts`. */
  maxProvenInputs: { setting: 'MAX_PROVEN_INPUTS', least: 100_000, most: 4_000_000, usual: 300_000 },
  /** A single locking or unlocking script. Content is in one, so the usual is that of a body. */
  maxScriptBytes: { setting: 'MAX_SCRIPT_BYTES', least: KiB, most: KiB * MiB, usual: 72 * MiB },
  /** What running the scripts of a submission may cost, in the units of `RunBudget`: some ten nanoseconds each. */
  maxScriptWork: { setting: 'MAX_SCRIPT_WORK', least: 1_000_000, most: 1e12, usual: DEFAULT_SCRIPT_WORK },
  /** How long verifying a submission may take, with all that is verified beside it. */
  verificationTimeout: { setting: 'VERIFICATION_TIMEOUT_MS', least: 1, most: 3_600_000, usual: 60_000 },
  /** Blocks that the chain tracker is asked about for the sake of one submission. */
  maxTrackerBlocks: { setting: 'MAX_TRACKER_BLOCKS', least: 1, most: 1_000_000, usual: 256 },
  /** Questions to the chain tracker that are under way at once. */
  maxTrackerRequests: { setting: 'MAX_TRACKER_REQUESTS', least: 1, most: 1000, usual: 8 },
  /** Submissions under way and waiting, and the bytes of their bodies. */
  maxSubmissions: { setting: 'MAX_WAITING_SUBMISSIONS', least: 1, most: 100_000, usual: 100 },
  /** Of them those of one client. */
  maxClientSubmissions: { setting: 'MAX_WAITING_PER_CLIENT', least: 1, most: 100_000, usual: 25 },
  maxSubmissionBytes: { setting: 'MAX_WAITING_BYTES', least: KiB, most: 64 * KiB * MiB, usual: 256 * MiB },
  /** What is kept of transactions that nothing admitted depends on: how many, and the bytes of all. */
  maxReevaluations: { setting: 'MAX_REEVALUATIONS', least: 1, most: 1_000_000, usual: 1000 },
  maxPendingTransactions: { setting: 'MAX_PENDING_TRANSACTIONS', least: 0, most: 10_000_000, usual: 100_000 },
  maxPendingBytes: { setting: 'MAX_PENDING_BYTES', least: 0, most: 64 * KiB * MiB, usual: 256 * MiB },
  /** Of one client; 0 is no limit. */
  readRate: { setting: 'READS_PER_MINUTE', least: 0, most: 10_000_000, usual: 6000 },
  /** An answer with a BEEF counts as one more read for each so many transactions in it. */
  transactionsPerRead: { setting: 'TRANSACTIONS_PER_READ', least: 1, most: 1_000_000, usual: 100 },
  submissionRate: { setting: 'SUBMISSIONS_PER_MINUTE', least: 0, most: 10_000_000, usual: 600 },
  /** Reads of one client that are worked on at once; the others of that client wait. */
  maxClientReads: { setting: 'MAX_READING_PER_CLIENT', least: 1, most: 100_000, usual: 8 },
  /** How many proxies stand before this host, and are believed about who asks. */
  trustedProxies: { setting: 'TRUST_PROXY', least: 0, most: 16, usual: 0 },
  /** What a sync asks a peer for, for the sake of one output that it offers: transactions, and their bytes. */
  maxSyncTransactions: { setting: 'MAX_SYNC_TRANSACTIONS', least: 1, most: 1_000_000, usual: 50_000 },
  maxSyncBytes: { setting: 'MAX_SYNC_BYTES', least: KiB, most: 64 * KiB * MiB, usual: 256 * MiB },
  /** How long one answer of a peer may take, and all of them for the sake of one output. */
  syncTimeout: { setting: 'SYNC_TIMEOUT_MS', least: 1, most: 3_600_000, usual: 30_000 },
  syncGraphTimeout: { setting: 'SYNC_GRAPH_TIMEOUT_MS', least: 1, most: 86_400_000, usual: 600_000 },
  maxConnections: { setting: 'MAX_CONNECTIONS', least: 1, most: 1_000_000, usual: 5000 },
  /** Of one address; 0 is no limit, and behind a proxy there is none. */
  maxClientConnections: { setting: 'MAX_CLIENT_CONNECTIONS', least: 0, most: 1_000_000, usual: 500 },
  /** How long the headers of a request may take to come, and all of it. */
  headersTimeout: { setting: 'HEADERS_TIMEOUT_MS', least: 1, most: 3_600_000, usual: 15_000 },
  requestTimeout: { setting: 'REQUEST_TIMEOUT_MS', least: 1, most: 3_600_000, usual: 300_000 },
  /** How long a connection is kept for the next request. */
  keepAliveTimeout: { setting: 'KEEP_ALIVE_TIMEOUT_MS', least: 1, most: 3_600_000, usual: 5000 },
  /** How long nothing may move on a connection whose other end has its turn: to send on, or to read. */
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
 * The limits, from the settings that are set.
 *
 * @throws ConfigError naming the first that does not hold.
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
