import { isIP } from 'node:net'
import { z } from 'zod'
import { isContentTypePattern } from '../../../backend/src/graph/topic-rules.js'
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
import {
  HEADER_SOURCE_KINDS,
  type HeaderSourceKind,
  parseSources,
  SOURCE_KINDS,
  type SourceAddress,
} from '../../chain/sources/source-address.js'
import type { GivenTracker } from '../../chain/tracker/given-headers.js'
import { ConfigError } from './errors.js'
import { chainTracker, headersCheckpoint, headersSourcesOf, sourceList } from './header-settings.js'
import { LIMITS, type Limits, readLimits } from './limits.js'
import { isMongoUrl } from './mongo-url.js'
import { FOREIGN_SETTINGS, misspelledSettings, parseSettings, wholeNumber } from './settings.js'

export { ConfigError }

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

/** The most bytes that a direct push of the marker may have. */
const MAX_PUSH = 75

const flag = z
  .enum(['true', 'false'], 'must be true or false')
  .default('false')
  .transform((text) => text === 'true')

/** Texts that are separated by commas, each once. */
const list = z
  .string()
  .default('')
  .transform((text) => [...new Set(text.split(',').map((each) => each.trim()))].filter((each) => each !== ''))

/** The order of secp256k1 (SEC 2, 2.4.1): keys are below it. */
const KEYS = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n

function isPrivateKey(text: string): boolean {
  if (!/^[0-9a-f]{1,64}$/i.test(text)) return false
  const key = BigInt(`0x${text}`)
  return key > 0n && key < KEYS
}

function isDatabase({ protocol, hostname, pathname }: URL): boolean {
  return protocol === 'mysql:' && hostname !== '' && /^\/[^/]+$/.test(pathname)
}

/** The longest URL for which the store can keep the progress of a sync. */
const MAX_PEER_URL = 255

function isPeerUrl(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isPlain = url?.search === '' && url.hash === '' && url.username + url.password === ''
  return isPlain && /^https?:$/.test(url.protocol) && text.length <= MAX_PEER_URL
}

function hasNoUser(text: string): boolean {
  const { username, password } = URL.canParse(text) ? new URL(text) : { username: '', password: '' }
  return username + password === ''
}

/** Of the 253 characters of a host name, this leaves room for a name in one label, or an outpoint in one with its zone. */
const MAX_GATEWAY_HOST = 189

const LABEL = '[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?'
const HOST_NAME = new RegExp(`^(?=.{1,253}$)${LABEL}(?:\\.${LABEL})*$`)

/** Whether a text is a host name in lower case. An IP address is not: it has no subdomains. */
function isHostName(text: string): boolean {
  return HOST_NAME.test(text) && isIP(text) === 0
}

const hostName = z
  .string()
  .transform((text) => text.toLowerCase())
  .refine(isHostName, 'must be a host name, without scheme and port')

/** Whether a text is an IP address that `Resolver.setServers` accepts: IPv6 is in brackets if a port follows. */
function isServerAddress(text: string): boolean {
  const [, v6, other = '', port = '53'] = /^(?:\[([^\]]*)\]|([^[\]]*?))(?::(\d{1,5}))?$/.exec(text) ?? []
  const isPort = Number(port) > 0 && Number(port) <= 65_535
  return isIP(text) === 6 || (isPort && (v6 === undefined ? isIP(other) === 4 : isIP(v6) === 6))
}

/** Each key is an environment variable in camel case: `dataDir` is `DATA_DIR`. */
const settings = {
  port: wholeNumber(0, 65535).default(8080),
  host: z.string().default('127.0.0.1'),
  dataDir: z.string().default('./data'),
  /** The URL of the MySQL or MariaDB database with the log; if undefined, the log is in MongoDB or in the folder. */
  knexUrl: z
    .string()
    .refine(
      (url) => URL.canParse(url) && isDatabase(new URL(url)),
      'must look like mysql://user:password@host:port/database',
    )
    .optional(),
  /** The URL of the MongoDB database that holds the log instead. */
  mongoUrl: z
    .string()
    .refine(isMongoUrl, 'must look like mongodb://user:password@host:port/database or mongodb+srv://…')
    .optional(),
  profile: z.enum(['local', 'mainnet'], 'must be local or mainnet').default('local'),
  genesis: outpoint.optional(),
  covenantVersion: z
    .enum(['1', '2'], 'must be 1 or 2')
    .transform((text): CovenantVersion => (text === '1' ? 1 : 2))
    .optional(),
  difficulty: wholeNumber(1, 64).optional(),
  nameMarker: z
    .string()
    .max(MAX_PUSH, `must be at most ${MAX_PUSH} characters`)
    .regex(/^[\x20-\x7e]+$/, 'must be ASCII')
    .optional(),
  nameTld: z
    .string()
    .regex(/^[a-z0-9-]{1,32}$/, 'must be 1 to 32 characters of a-z 0-9 -')
    .optional(),
  chainTracker: chainTracker.optional(),
  /** Sources for our own chain of headers, if not the chain sources. */
  headersSources: sourceList(HEADER_SOURCE_KINDS)
    .refine(({ length }) => length > 0, 'must name a source')
    .optional(),
  /** The block that the chain must contain; by default, the network's. */
  headersCheckpoint: headersCheckpoint.optional(),
  /** How long a response of the chain tracker may take, in milliseconds. */
  chainTrackerTimeoutMs: wholeNumber(1, 600_000).default(10_000),
  /** The services for following the chain, in order of preference; if empty, it is not followed. */
  chainSources: sourceList(SOURCE_KINDS).optional(),
  /** The most requests a second to each chain source. */
  chainSourceRate: wholeNumber(1, 10_000).default(10),
  /** The subscription at the first JungleBus in `chainSources` that names transactions to look at. */
  junglebusSubscription: z
    .string()
    .regex(/^[\w-]{1,128}$/, 'must be the id of a subscription: up to 128 characters of a-z A-Z 0-9 _ -')
    .optional(),
  /** The ordinals that the host follows. The name tree is followed in any case. */
  followOrdinals: z.enum(['names', 'all', 'none'], 'must be names, all or none').default('names'),
  /** Milliseconds from the end of one sweep to the next, unless a new block starts it earlier. */
  followPollMs: wholeNumber(100, 86_400_000).default(60_000),
  /** How often header sources are asked and stored proofs are checked, in milliseconds; 0: at the start only. */
  headersPollMs: wholeNumber(0, 86_400_000).default(60_000),
  /** How many of the last blocks are checked again. */
  reorgDepth: wholeNumber(1, 10_000).default(10),
  /** The bearer token of `/arc-ingest`; if undefined, none is needed. */
  arcCallbackToken: bearerToken.optional(),
  network: z
    .enum(['main', 'mainnet', 'test', 'testnet'], 'must be main or test')
    .transform((network) => (network.startsWith('main') ? ('main' as const) : ('test' as const)))
    .default('main'),
  hostingUrl: z
    .url({ protocol: /^https?$/, error: 'must be a URL' })
    .refine(hasNoUser, 'must have no user and no password: everybody gets to read it')
    .optional(),
  /** The key that signs the host's advertisements, in hex. */
  serverPrivateKey: z
    .string()
    // The message must not quote the value.
    .refine(isPrivateKey, 'must be a private key, up to 64 characters of hex')
    .transform((hex) => hex.padStart(64, '0'))
    .optional(),
  /** The largest body of a submission. */
  maxBodyBytes: wholeNumber(1024, 1024 ** 3).default(72 * 1024 * 1024),
  /** Whether bodies may be compressed; then their inflated size counts. */
  acceptCompressedBodies: flag,
  /** The longest content that `tm_ordinals` admits, in bytes. */
  maxContentBytes: wholeNumber(1, 1024 ** 3).default(64 * 1024 * 1024),
  /** The content types that `tm_ordinals` admits, such as `text/plain` or `image/*`; undefined: all. */
  contentTypes: z
    .string()
    .transform((list) => list.split(',').map((type) => type.trim().toLowerCase()))
    .refine(
      (types) => types.every(isContentTypePattern),
      'must be comma-separated content types, such as text/plain,image/*',
    )
    .optional(),
  /** More directives for the sandbox of content that a browser might run. */
  contentSecurityPolicy: z
    .string()
    .max(1000, 'must be at most 1000 characters')
    // No comma, which would start another policy.
    .regex(
      /^[\x21-\x2b\x2d-\x7e]+(?: [\x21-\x2b\x2d-\x7e]+)*$/,
      'must be directives in ASCII, without commas',
    )
    .refine((policy) => !/(?:^|;)\s*sandbox/i.test(policy), 'cannot contain sandbox: that is set already')
    .optional(),
  /** The domain whose subdomains are hosts of names and outpoints; `none`: they have no hosts. By default, the profile's. */
  gatewayHost: hostName
    .refine(({ length }) => length <= MAX_GATEWAY_HOST, `must be at most ${MAX_GATEWAY_HOST} characters`)
    .optional(),
  /** Further hosts of the service. If there are any, all others are not its own. */
  serviceHosts: list
    .transform((hosts) => [...new Set(hosts.map((host) => host.toLowerCase()))])
    .refine((hosts) => hosts.every(isHostName), 'must be comma-separated host names, without ports'),
  /** Whether other hosts may be domains whose DNS records say what they show. */
  customDomains: flag,
  /** DNS servers for the records of custom domains; if empty, the system's. */
  dnsServers: list.refine(
    (servers) => servers.every(isServerAddress),
    'must be comma-separated IP addresses, with or without ports',
  ),
  /** Whether pages below `/content/` redirect to the origin of their outpoint. */
  contentRedirect: flag,
  seed: z.enum(['local', 'none'], 'must be local or none').optional(),
  /** The bearer token of the routes below `/admin`; if undefined, there are no such routes. */
  adminToken: bearerToken.optional(),
  syncPeers: list.refine((urls) => urls.every(isPeerUrl), 'must be comma-separated URLs of hosts'),
  /** Milliseconds from the end of one sync with a peer to the next; 0: at the start only. */
  syncIntervalMs: wholeNumber(0, 86_400_000).default(60_000),
  logLevel: z
    .enum(
      ['fatal', 'error', 'warn', 'info', 'debug', 'silent'],
      'must be fatal, error, warn, info, debug or silent',
    )
    .default('info'),
  logRequests: flag,
}

type Settings = z.output<z.ZodObject<typeof settings>>

export interface Config
  extends Omit<
    Settings,
    | 'profile'
    | 'genesis'
    | 'covenantVersion'
    | 'difficulty'
    | 'nameMarker'
    | 'nameTld'
    | 'seed'
    | 'gatewayHost'
  > {
  profile: Profile
  terms: DeploymentTerms
  /** The rules that were set explicitly, rather than by the profile. */
  setTerms: TermsOverrides
  /** The tree to follow; if no genesis is set, the tree in the store. Undefined if there is none, which turns names off. */
  deployment: Deployment | undefined
  seed: boolean
  /** The domain whose subdomains are hosts of names and outpoints; undefined: there are no such hosts. */
  gatewayHost: string | undefined
  /** Whether proofs are checked against our own chain of headers. */
  chainTracker: 'headers' | 'scripts-only'
  /** The chain tracker of another host, which then decides which proofs count. Not a setting. */
  givenTracker?: GivenTracker | undefined
  /** Whether this host mines what is submitted: on a local network whose tree it has deployed. Not a setting. */
  minesBlocks?: boolean
  chainSources: SourceAddress[]
  headersSources: SourceAddress<HeaderSourceKind>[]
  limits: Limits
  /** One sentence for each setting, of another overlay host or an earlier version, that is set but not used. */
  unused: string[]
  /** One sentence for each suspicious environment variable. */
  warnings: string[]
}

/** Why settings of other overlay hosts, and other names for ours, have no effect. */
export const UNUSED_SETTINGS: Readonly<Record<string, string>> = {
  ...FOREIGN_SETTINGS,
  ARC_API_KEY: 'only `minetree mine` and `minetree advertise` use it',
  WORKERS: 'one process answers everything',
}

export const SETTINGS: readonly string[] = [
  ...Object.keys(settings).map(variableOf),
  ...Object.values(LIMITS).map(({ setting }) => setting),
  ...Object.keys(UNUSED_SETTINGS),
]

/**
 * Reads the settings from environment variables; an empty one counts as not set.
 *
 * @throws ConfigError that names the first invalid setting, or a variable that must be a misspelled setting, which would
 * otherwise be ignored without notice.
 */
export function readConfig(env: Record<string, string | undefined>): Config {
  const set = Object.fromEntries(
    Object.entries(env).filter(([, value]) => value !== undefined && value !== ''),
  )
  const misspelled = misspelledSettings(set, SETTINGS)
  const certain = misspelled.find(({ isCertain }) => isCertain)
  if (certain !== undefined)
    throw new ConfigError(`${certain.name}: unknown setting; did you mean ${certain.setting}?`)
  const { genesis, covenantVersion, difficulty, nameMarker, nameTld, seed, ...others } = readSettings(set)
  if (others.knexUrl !== undefined && others.mongoUrl !== undefined)
    throw new ConfigError('MONGO_URL: KNEX_URL is set as well; unset one of them')
  const profile = PROFILES[others.profile]
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
  // A local network has no headers; live proofs are checked unless that is disabled explicitly.
  const usual = profile.name === 'mainnet' ? 'headers' : 'scripts-only'
  const { chainTracker = usual } = others
  const chainSources = others.chainSources ?? (isLive ? parseSources('junglebus') : [])
  if (others.junglebusSubscription !== undefined && !chainSources.some(({ kind }) => kind === 'junglebus'))
    throw new ConfigError('JUNGLEBUS_SUBSCRIPTION: there is no JungleBus in CHAIN_SOURCES')
  const canSeed = deployment === undefined && chainTracker === 'scripts-only'
  if (seed === 'local' && !canSeed)
    throw new ConfigError('SEED: local requires PROFILE=local, CHAIN_TRACKER=scripts-only and no GENESIS')
  // Browsers resolve subdomains of `localhost` without DNS (RFC 6761 6.3).
  const { gatewayHost: host = profile.name === 'local' ? 'localhost' : 'none' } = others
  const gatewayHost = host === 'none' ? undefined : host
  if (others.contentRedirect && gatewayHost === undefined)
    throw new ConfigError('CONTENT_REDIRECT: requires GATEWAY_HOST, below which outpoints have their hosts')
  return {
    ...others,
    gatewayHost,
    profile,
    terms: termsOf(profile, overrides),
    setTerms: overrides,
    deployment,
    seed: canSeed && seed !== 'none',
    chainTracker,
    chainSources,
    headersSources: headersSourcesOf(others),
    limits: readLimits(set, others),
    unused: Object.entries(UNUSED_SETTINGS)
      .filter(([name]) => name in set)
      .map(([name, why]) => `${name} is set and has no effect: ${why}`),
    warnings: misspelled.map(
      ({ name, setting }) => `${name} is set but is not a setting; did you mean ${setting}?`,
    ),
  }
}

function readSettings(set: Record<string, unknown>): Settings {
  const names = Object.keys(settings).map((name) => [name, variableOf(name)] as const)
  const schemas = Object.values(settings).map((schema, index) => [names[index]?.[1], schema])
  const parsed = parseSettings(z.object(Object.fromEntries(schemas)), set)
  return Object.fromEntries(names.map(([name, variable]) => [name, parsed[variable]])) as Settings
}

function variableOf(name: string): string {
  return name.replace(/[A-Z]/g, '_$&').toUpperCase()
}
