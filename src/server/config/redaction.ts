import { percentDecoded } from '../../../backend/src/protocol/bytes.js'
import { mongoSecrets } from './mongo-url.js'

/** Settings that nobody but the operator may read, whichever command uses them. */
const SECRET = ['ADMIN_TOKEN', 'ARC_CALLBACK_TOKEN', 'SERVER_PRIVATE_KEY', 'ARC_API_KEY']
/** Settings that are URLs, and may have a password in them, a key in the path, or one in the query. */
const ADDRESSES = ['CHAIN_TRACKER', 'HOSTING_URL', 'KNEX_URL']
/** Of a path: what is as long is a key, and no word. */
const LEAST_KEY = 16
/** Settings that are URLs, one or several with commas between them, and may have a key in path or query. */
const KEYED = ['CHAIN_TRACKER', 'SYNC_PEERS']
/** What is shorter is no secret, and stands in any text. */
const LEAST = 4

/** What stands in place of a secret. */
export const HIDDEN = '[hidden]'

/**
 * Makes texts without the secrets of the settings: wherever one stands in a text, as it is or as in a URL, something else
 * stands instead. So no line can have one, whatever way it went there.
 *
 * @param env The settings, as environment variables.
 */
export function hidingSecrets(env: Record<string, string | undefined>): (text: string) => string {
  const secrets = [
    ...SECRET.map((name) => env[name] ?? ''),
    ...ADDRESSES.flatMap((name) => secretsIn(env[name] ?? '')),
    ...mongoSecrets(env.MONGO_URL ?? '').flatMap(decodedToo),
  ]
  const urls = KEYED.flatMap((name) => (env[name] ?? '').split(',')).flatMap(keyedUrl)
  const written = secrets
    .filter(({ length }) => length >= LEAST)
    .flatMap((secret) => [secret, encodeURIComponent(secret)])
    // Of two of which one begins as the other, the longer is to go whole.
    .sort((one, other) => other.length - one.length)
  return (text) => {
    const origins = urls.reduce(withOrigin, text)
    return written.reduce((rest, secret) => rest.replaceAll(secret, HIDDEN), origins)
  }
}

interface KeyedUrl {
  host: string
  /** Its path and query, as it is written and as it is read. */
  paths: string[]
}

/** A URL with more than an origin. */
function keyedUrl(written: string): KeyedUrl[] {
  const text = written.trim()
  if (!URL.canParse(text)) return []
  const { host, pathname, search } = new URL(text)
  const read = (pathname + search).replace(/\/+$/, '')
  if (read === '') return []
  const rest = text.replace(/^\w+:\/\/[^/?]*/, '').replace(/\/+$/, '')
  return [{ host, paths: [...new Set([rest, read])] }]
}

/** Of a URL in a text, leaves the origin. */
function withOrigin(text: string, { host, paths }: KeyedUrl): string {
  return paths.reduce((rest, path) => rest.replaceAll(host + path, `${host}/${HIDDEN}`), text)
}

function secretsIn(address: string): string[] {
  if (!URL.canParse(address)) return []
  const { password, pathname, search, searchParams } = new URL(address)
  const keys = pathname.split('/').filter(({ length }) => length >= LEAST_KEY)
  return [search.slice(1), ...searchParams.values(), password, ...keys].flatMap(decodedToo)
}

function decodedToo(secret: string): string[] {
  return [secret, percentDecoded(secret) ?? '']
}
