import { distance } from 'fastest-levenshtein'
import { z } from 'zod'
import { ConfigError } from './errors.js'

export const wholeNumber = (least: number, most: number) => {
  const message = ({ input }: { input?: unknown }): string =>
    `must be a whole number from ${least} to ${most}, not ${String(input).slice(0, MAX_SHOWN)}`
  return z
    .string()
    .regex(/^\d{1,15}$/, { error: message })
    .transform(Number)
    .refine((value) => value >= least && value <= most, { error: message })
}

/** How many characters of a wrong value an error quotes. */
const MAX_SHOWN = 40

/**
 * Parses settings with a schema.
 *
 * @throws ConfigError that names the first invalid one.
 */
export function parseSettings<Schema extends z.ZodType>(
  schema: Schema,
  set: Record<string, unknown>,
): z.output<Schema> {
  const parsed = schema.safeParse(set)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw new ConfigError(`${issue?.path.join('.')}: ${issue?.message}`)
}

const BY_LOG = 'KNEX_URL or MONGO_URL names a log in a database'
const BY_PORT = 'the setting is PORT'
const BY_HOST = 'the setting is HOST'

/** The names that other programs use for settings, and ours for each. */
export const FOREIGN_SETTINGS: Readonly<Record<string, string>> = {
  DATABASE_URL: BY_LOG,
  DB_URL: BY_LOG,
  MYSQL_URL: BY_LOG,
  MONGODB_URI: BY_LOG,
  MONGODB_URL: BY_LOG,
  HTTP_PORT: BY_PORT,
  SERVER_PORT: BY_PORT,
  LISTEN_PORT: BY_PORT,
  LISTEN_ADDRESS: BY_HOST,
  BIND_ADDRESS: BY_HOST,
  HTTP_HOST: BY_HOST,
  SERVER_HOST: BY_HOST,
  LISTEN_HOST: BY_HOST,
}

/**
 * Settings whose names, or similar ones, other programs use too: `LOGLEVEL` and `MONGO_URI` may be meant for those. So
 * variables that resemble these only cause a warning.
 */
const COMMON = new Set([
  ...Object.keys(FOREIGN_SETTINGS),
  'PORT',
  'HOST',
  'WORKERS',
  'SEED',
  'NETWORK',
  'DATA_DIR',
  'LOG_LEVEL',
  'LOG_REQUESTS',
  'MONGO_URL',
  'CONTENT_TYPES',
])
/** Names so short that almost anything resembles them: `POST`, `GHOST`, `SEEDS`. */
const TOO_SHORT = 5
/** The most wrong letters in a long name. */
const MAX_APART = 2

export interface Misspelling {
  name: string
  setting: string
  /** Whether other programs are unlikely to have a variable of that name. */
  isCertain: boolean
}

/**
 * Finds variables that were probably meant to be a setting: a letter or two apart (`PROFIL`, `MAX_BODY_BYTE`), or with a word
 * more or less (`CHAIN_TRACKER_URL`, `SYNC_TIMEOUT`).
 *
 * @param known The names of all settings.
 */
export function misspelledSettings(
  env: Record<string, string | undefined>,
  known: readonly string[],
): Misspelling[] {
  const settings = new Set(known)
  return Object.keys(env)
    .filter((name) => env[name] !== undefined && /^[A-Z][A-Z0-9_]*$/.test(name) && !settings.has(name))
    .flatMap((name) => {
      const setting = nearest(name, known)
      return setting === undefined ? [] : [{ name, setting, isCertain: !COMMON.has(setting) }]
    })
}

function nearest(name: string, known: readonly string[]): string | undefined {
  const near = known
    .filter((setting) => setting.length > TOO_SHORT && Math.abs(setting.length - name.length) <= MAX_APART)
    .map((setting) => ({ setting, apart: distance(name, setting) }))
    .filter(({ setting, apart }) => apart <= (setting.length < 9 ? 1 : MAX_APART))
    .sort((one, other) => one.apart - other.apart)
  if (near[0] !== undefined) return near[0].setting
  const short = known.find((setting) => setting.length <= TOO_SHORT && slippedFrom(setting, name))
  if (short !== undefined) return short
  const longer = known.find((setting) => continues(setting, name))
  // The longest of several prefixes.
  const shorter = known.filter((setting) => continues(name, setting))
  return longer ?? shorter.sort((one, other) => other.length - one.length)[0]
}

/** Whether a name is a short setting with a letter doubled, or two adjacent letters exchanged: `PORTT`, `PROT`. */
function slippedFrom(setting: string, name: string): boolean {
  const slips = [...setting].flatMap((letter, at) => [
    setting.slice(0, at) + letter + setting.slice(at),
    setting.slice(0, at) + (setting[at + 1] ?? '') + letter + setting.slice(at + 2),
  ])
  return name !== setting && slips.includes(name)
}

/** Whether a longer name is a shorter one plus a word. The shorter one needs at least two words: `MAX` alone says nothing. */
function continues(longer: string, shorter: string): boolean {
  return shorter.includes('_') && longer.startsWith(`${shorter}_`)
}
