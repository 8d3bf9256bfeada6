import { percentDecoded } from '../../../backend/src/protocol/bytes.js'
import { mongoSecrets } from './mongo-url.js'

const SECRET = ['ADMIN_TOKEN', 'ARC_CALLBACK_TOKEN', 'SERVER_PRIVATE_KEY', 'ARC_API_KEY']
/** Settings that are URLs, which may contain a password, or a key in the path or the query. */
const ADDRESSES = ['HOSTING_URL', 'KNEX_URL']
/** Path segments of at least this length count as keys. */
const LEAST_KEY = 16
/** Settings that are one or several URLs, separated by commas, with a key in path or query. */
const KEYED = ['HEADERS_SOURCES', 'CHAIN_SOURCES', 'SYNC_PEERS']
/** Shorter texts are not hidden: they are no secrets, and occur anywhere. */
const LEAST = 4

export const HIDDEN = '[hidden]'

/** Base58 as long as a private key in WIF. */
const LONG_BASE58 = /[1-9A-HJ-NP-Za-km-z]{51,}/g
/** The lengths of a private key in WIF. */
const WIF_LENGTHS = [51, 52]
const HEX_KEY = /^[0-9a-f]{64}$/i
/** The scheme of an address, if it has one, and the user part before its host. */
const USER = /^([\w+.-]*:(?=[/\\]))?[/\\]*([^/?#\s]*@)/

const SECRET_OPTIONS = ['--arc-api-key']

/**
 * Returns a function that replaces the secrets of the settings and of the command line in a text, plain or URL-encoded, so that no
 * log line or message can contain one.
 *
 * @param env The settings, as environment variables.
 * @param args The command line: users, passwords, queries and keys in the path of its URLs are secret.
 */
export function hidingSecrets(
  env: Record<string, string | undefined>,
  args: readonly string[] = [],
): (text: string) => string {
  const secrets = [
    ...args.flatMap((arg, at) => [...keysIn(arg), ...secretsInArgument(arg, args[at - 1] ?? '')]),
    ...SECRET.map((name) => env[name] ?? ''),
    ...ADDRESSES.flatMap((name) => secretsIn(withoutKind(env[name] ?? ''))),
    ...mongoSecrets(env.MONGO_URL ?? '').flatMap(withDecoded),
  ]
  const urls = KEYED.flatMap((name) => (env[name] ?? '').split(',')).flatMap(keyedUrl)
  const written = secrets
    .filter(({ length }) => length >= LEAST)
    .flatMap((secret) => [secret, encodeURIComponent(secret)])
    // The longest first, as one secret may be the beginning of another.
    .sort((one, other) => other.length - one.length)
  return (text) => {
    const origins = urls.reduce(withOrigin, text)
    return written.reduce((rest, secret) => rest.replaceAll(secret, HIDDEN), origins)
  }
}

/** A URL without a preceding kind of service: `chaintracks=https://…`. */
function withoutKind(written: string): string {
  return written.replace(/^[a-z]+=/, '')
}

interface KeyedUrl {
  host: string
  /** Path and query, as written and as parsed. */
  paths: string[]
}

/** The URL, if it has more than an origin. */
function keyedUrl(written: string): KeyedUrl[] {
  const text = withoutKind(written.trim())
  if (!URL.canParse(text)) return []
  const { host, pathname, search } = new URL(text)
  const read = (pathname + search).replace(/\/+$/, '')
  if (read === '') return []
  const rest = text.replace(/^\w+:\/\/[^/?]*/, '').replace(/\/+$/, '')
  return [{ host, paths: [...new Set([rest, read])] }]
}

function withOrigin(text: string, { host, paths }: KeyedUrl): string {
  return paths.reduce((rest, path) => rest.replaceAll(host + path, `${host}/${HIDDEN}`), text)
}

function secretsIn(address: string): string[] {
  if (!URL.canParse(address)) return []
  const { password, pathname, search, searchParams, hash } = new URL(address)
  const keys = pathname.split('/').filter(({ length }) => length >= LEAST_KEY)
  return [search.slice(1), ...searchParams.values(), hash.slice(1), password, ...keys].flatMap(withDecoded)
}

/** Private keys in WIF, even after other text: a key in the wrong place is quoted as an option, a file or an address. */
function keysIn(arg: string): string[] {
  const runs = arg.match(LONG_BASE58) ?? []
  // Names may be as long, but have no capitals.
  const keys = runs.filter((run) => /[A-Z]/.test(run))
  return keys.flatMap((run) => [run, ...WIF_LENGTHS.map((length) => run.slice(-length))])
}

function secretsInArgument(arg: string, before: string): string[] {
  const [, option = before, value = arg] = /^(--[\w-]+)=(.*)$/s.exec(arg) ?? []
  if (SECRET_OPTIONS.includes(option)) return [value]
  return value.split(',').flatMap((part) => {
    const address = withoutKind(part.trim())
    // Without such an option, it may be a txid.
    if (option.startsWith('--key') && HEX_KEY.test(address)) return [address]
    // Even if it is no URL, as errors quote it.
    const [, scheme = '', user = ''] = USER.exec(address) ?? []
    const [name = '', ...password] = user.slice(0, -1).split(':')
    if (!address.includes('://') && scheme === '' && password.length === 0) return []
    // A user without a password is a token.
    const userinfo = [user, password.length > 0 ? password.join(':') : name]
    return [...userinfo.flatMap(withDecoded), ...secretsIn(address)]
  })
}

function withDecoded(secret: string): string[] {
  return [secret, percentDecoded(secret) ?? '']
}
