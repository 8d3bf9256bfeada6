import { z } from 'zod'
import { isContentTypePattern } from '../../../backend/src/graph/ordinals-policy.js'
import type { Network } from '../../../backend/src/protocol/address.js'
import type { CovenantVersion, Deployment, DeploymentTerms } from '../../../backend/src/protocol/mint.js'
import {
  formatOutpoint,
  type Outpoint,
  PointerError,
  parseOutpoint,
} from '../../../backend/src/protocol/outpoint.js'
import {
  deploymentOf,
  PROFILES,
  type Profile,
  type TermsOverrides,
  termsOf,
} from '../../../backend/src/protocol/profile.js'
import { ConfigError } from './errors.js'
import { LIMITS, type Limits, readLimits } from './limits.js'
import { isMongoUrl } from './mongo-url.js'
import { misspelledSettings, parseSettings, wholeNumber } from './settings.js'

export { ConfigError }

export interface Config {
  port: number
  host: string
  /** The folder of the embedded store. */
  dataDir: string
  /** The URL of the MySQL or MariaDB database that holds the graph; undefined: the embedded store does. */
  knexUrl: string | undefined
  /** The URL of the MongoDB database that holds it instead. */
  mongoUrl: string | undefined
  profile: Profile
  /** The rules of the tree to follow, or to deploy. */
  terms: DeploymentTerms
  /** The rules that are set, and do not follow from the profile. */
  setTerms: TermsOverrides
  /** The tree to follow; undefined if no genesis is set: then that of the store, and without one, names are off. */
  deployment: Deployment | undefined
  /** Whether to fill an empty store with a local network. */
  seed: boolean
  /** The source of block headers: `whatsonchain`, the URL of a service, or `scripts-only` if proofs are not checked. */
  chainTracker: string
  /** How long a response of the chain tracker may take, in milliseconds. */
  chainTrackerTimeout: number
  /** How often stored proofs are checked against the chain, in milliseconds; 0: at the start only. */
  headersPollInterval: number
  /** How many of the last blocks are checked. */
  reorgDepth: number
  /** The bearer token of `/arc-ingest`; undefined: none is needed. */
  arcCallbackToken: string | undefined
  network: Network
  hostingUrl: string | undefined
  /** The largest body of a submission, in bytes. */
  maxBodyBytes: number
  /** Whether bodies may be compressed; then their inflated size counts. */
  acceptCompressedBodies: boolean
  /** The longest content that `tm_ordinals` admits, in bytes. */
  maxContentBytes: number
  /** The content types that it admits, as `text/plain` or `image/*`; undefined: all. */
  contentTypes: string[] | undefined
  /** More directives for the sandbox of content that a browser would run. */
  contentPolicy: string | undefined
  /** The bearer token of the routes below `/admin`; undefined: there are none. */
  adminToken: string | undefined
  /** The URLs of the hosts to sync with. */
  syncPeers: string[]
  /** Milliseconds from the end of one sync with a peer to the next; 0: at the start only. */
  syncInterval: number
  limits: Limits
  logLevel: 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'silent'
  /** Whether each request is logged. */
  logRequests: boolean
  /** Settings of other overlay hosts that are set, and that this release does not use. */
  unused: string[]
  /** Warnings about other environment variables, a sentence each. */
  warnings: string[]
}

const outpoint = z.string().transform((text, context): Outpoint => {
  try {
    return parseOutpoint(text)
  } catch (error) {
    if (!(error instanceof PointerError)) throw error
    context.addIssue('must be an outpoint, <txid>_<vout>')
    return z.NEVER
  }
})

const bearerToken = z
  .string()
  .min(16, 'must be at least 16 characters')
  .max(1000, 'must be at most 1000 characters')
  // RFC 6750 2.1.
  .regex(/^[A-Za-z0-9._~+/-]+=*$/, 'may only have characters of A-Z a-z 0-9 - . _ ~ + /, and = at the end')

/** How many bytes a direct push of the marker may have. */
const MAX_PUSH = 75

const environment = z.object({
  PORT: wholeNumber(0, 65535).default(8080),
  HOST: z.string().default('127.0.0.1'),
  DATA_DIR: z.string().default('./data'),
  KNEX_URL: z
    .string()
    .refine(
      (url) => URL.canParse(url) && isDatabase(new URL(url)),
      'must look like mysql://user:password@host:port/database',
    )
    .optional(),
  MONGO_URL: z
    .string()
    .refine(isMongoUrl, 'must look like mongodb://user:password@host:port/database or mongodb+srv://…')
    .optional(),
  PROFILE: z.enum(['local', 'mainnet'], 'must be local or mainnet').default('local'),
  GENESIS: outpoint.optional(),
  COVENANT_VERSION: z
    .enum(['1', '2'], 'must be 1 or 2')
    .transform((text): CovenantVersion => (text === '1' ? 1 : 2))
    .optional(),
  DIFFICULTY: wholeNumber(1, 64).optional(),
  NAME_MARKER: z
    .string()
    .max(MAX_PUSH, `must be at most ${MAX_PUSH} characters`)
    .regex(/^[\x20-\x7e]+$/, 'must be ASCII')
    .optional(),
  NAME_TLD: z
    .string()
    .regex(/^[a-z0-9-]{1,32}$/, 'must be 1 to 32 characters of a-z 0-9 -')
    .optional(),
  CHAIN_TRACKER: z
    .union([
      z.literal('scripts-only'),
      z.literal('whatsonchain'),
      z.url({
        protocol: /^https?$/,
        error: 'must be scripts-only, whatsonchain or the URL of a headers service',
      }),
    ])
    .optional(),
  CHAIN_TRACKER_TIMEOUT_MS: wholeNumber(1, 600_000).default(10_000),
  HEADERS_POLL_MS: wholeNumber(0, 86_400_000).default(60_000),
  REORG_DEPTH: wholeNumber(1, 10_000).default(10),
  ARC_CALLBACK_TOKEN: bearerToken.optional(),
  NETWORK: z
    .enum(['main', 'mainnet', 'test', 'testnet'], 'must be main or test')
    .transform((network) => (network.startsWith('main') ? 'main' : 'test'))
    .default('main'),
  HOSTING_URL: z.url({ protocol: /^https?$/, error: 'must be a URL' }).optional(),
  MAX_BODY_BYTES: wholeNumber(1024, 1024 ** 3).default(72 * 1024 * 1024),
  ACCEPT_COMPRESSED_BODIES: z
    .enum(['true', 'false'], 'must be true or false')
    .default('false')
    .transform((text) => text === 'true'),
  MAX_CONTENT_BYTES: wholeNumber(1, 1024 ** 3).default(64 * 1024 * 1024),
  CONTENT_TYPES: z
    .string()
    .transform((list) => list.split(',').map((type) => type.trim().toLowerCase()))
    .refine(
      (types) => types.every(isContentTypePattern),
      'must be comma-separated content types, such as text/plain,image/*',
    )
    .optional(),
  CONTENT_SECURITY_POLICY: z
    .string()
    .max(1000, 'must be at most 1000 characters')
    // No comma: it would start another policy.
    .regex(
      /^[\x21-\x2b\x2d-\x7e]+(?: [\x21-\x2b\x2d-\x7e]+)*$/,
      'must be directives in ASCII, without commas',
    )
    .refine((policy) => !/(?:^|;)\s*sandbox/i.test(policy), 'cannot contain sandbox: that is set already')
    .optional(),
  SEED: z.enum(['local', 'none'], 'must be local or none').optional(),
  ADMIN_TOKEN: bearerToken.optional(),
  SYNC_PEERS: z
    .string()
    .default('')
    .transform((list) => [...new Set(list.split(',').map((url) => url.trim()))].filter((url) => url !== ''))
    .refine((urls) => urls.every(isPeerUrl), 'must be comma-separated URLs of hosts'),
  SYNC_INTERVAL_MS: wholeNumber(0, 86_400_000).default(60_000),
  LOG_LEVEL: z
    .enum(
      ['fatal', 'error', 'warn', 'info', 'debug', 'silent'],
      'must be fatal, error, warn, info, debug or silent',
    )
    .default('info'),
  LOG_REQUESTS: z
    .enum(['true', 'false'], 'must be true or false')
    .default('false')
    .transform((text) => text === 'true'),
})

function isDatabase({ protocol, hostname, pathname }: URL): boolean {
  return protocol === 'mysql:' && hostname !== '' && /^\/[^/]+$/.test(pathname)
}

/** The longest URL by which a store can keep the progress of a sync. */
const MAX_PEER_URL = 255

/** Whether a URL can be the base of a peer's routes. */
function isPeerUrl(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isPlain = url?.search === '' && url.hash === '' && url.username + url.password === ''
  return isPlain && /^https?:$/.test(url.protocol) && text.length <= MAX_PEER_URL
}

/** Settings of other overlay hosts. */
export const UNUSED_SETTINGS: readonly string[] = ['SERVER_PRIVATE_KEY', 'ARC_API_KEY']

/** The names of all settings, including unused ones. */
export const SETTINGS: readonly string[] = [
  ...Object.keys(environment.shape),
  ...Object.values(LIMITS).map(({ setting }) => setting),
  ...UNUSED_SETTINGS,
]

/**
 * Reads the settings from environment variables; an empty one counts as not set.
 *
 * @throws ConfigError that names the first invalid setting, or a variable that must be a misspelled setting, which would
 * otherwise have no effect without a word.
 */
export function readConfig(env: Record<string, string | undefined>): Config {
  const set = Object.fromEntries(
    Object.entries(env).filter(([, value]) => value !== undefined && value !== ''),
  )
  const misspelled = misspelledSettings(set, SETTINGS)
  const certain = misspelled.find(({ isCertain }) => isCertain)
  if (certain !== undefined)
    throw new ConfigError(`${certain.name}: unknown setting; did you mean ${certain.setting}?`)
  const settings = parseSettings(environment, set)
  if (settings.KNEX_URL !== undefined && settings.MONGO_URL !== undefined)
    throw new ConfigError('MONGO_URL: KNEX_URL is set as well; unset one of them')
  const profile = PROFILES[settings.PROFILE]
  const { GENESIS: genesis, COVENANT_VERSION: covenantVersion } = settings
  const { DIFFICULTY: difficulty, NAME_MARKER: nameMarker, NAME_TLD: nameTld } = settings
  const overrides = {
    ...(covenantVersion && { covenantVersion }),
    ...(difficulty && { difficulty }),
    ...(nameMarker && { nameMarker }),
    ...(nameTld && { nameTld }),
  }
  const deployment = deploymentOf(profile, { ...overrides, ...(genesis && { genesis }) })
  const isLive = deployment !== undefined && formatOutpoint(deployment.genesis) === profile.genesis
  if (isLive && deployment.covenantVersion !== profile.covenantVersion)
    throw new ConfigError(`COVENANT_VERSION: must be ${profile.covenantVersion} for the live tree`)
  // A local network has no headers; proofs of the live one are checked unless that is disabled explicitly.
  const chainTracker =
    settings.CHAIN_TRACKER ?? (profile.name === 'mainnet' ? 'whatsonchain' : 'scripts-only')
  const canSeed = deployment === undefined && chainTracker === 'scripts-only'
  if (settings.SEED === 'local' && !canSeed)
    throw new ConfigError('SEED: local requires PROFILE=local, CHAIN_TRACKER=scripts-only and no GENESIS')
  return {
    port: settings.PORT,
    host: settings.HOST,
    dataDir: settings.DATA_DIR,
    knexUrl: settings.KNEX_URL,
    mongoUrl: settings.MONGO_URL,
    profile,
    terms: termsOf(profile, overrides),
    setTerms: overrides,
    deployment,
    seed: canSeed && settings.SEED !== 'none',
    chainTracker,
    chainTrackerTimeout: settings.CHAIN_TRACKER_TIMEOUT_MS,
    headersPollInterval: settings.HEADERS_POLL_MS,
    reorgDepth: settings.REORG_DEPTH,
    arcCallbackToken: settings.ARC_CALLBACK_TOKEN,
    network: settings.NETWORK,
    hostingUrl: settings.HOSTING_URL,
    maxBodyBytes: settings.MAX_BODY_BYTES,
    acceptCompressedBodies: settings.ACCEPT_COMPRESSED_BODIES,
    maxContentBytes: settings.MAX_CONTENT_BYTES,
    contentTypes: settings.CONTENT_TYPES,
    contentPolicy: settings.CONTENT_SECURITY_POLICY,
    adminToken: settings.ADMIN_TOKEN,
    syncPeers: settings.SYNC_PEERS,
    syncInterval: settings.SYNC_INTERVAL_MS,
    limits: readLimits(set),
    logLevel: settings.LOG_LEVEL,
    logRequests: settings.LOG_REQUESTS,
    unused: UNUSED_SETTINGS.filter((name) => name in set),
    warnings: misspelled.map(
      ({ name, setting }) => `${name} is set but is not a setting; did you mean ${setting}?`,
    ),
  }
}
