import { distance } from 'fastest-levenshtein'
import { z } from 'zod'
import { ConfigError } from './errors.js'

/** A setting that is a whole number, within bounds. */
export const wholeNumber = (least: number, most: number) =>
  z
    .string()
    .regex(/^\d{1,15}$/, `must be a whole number from ${least} to ${most}`)
    .transform(Number)
    .refine((value) => value >= least && value <= most, `must be a whole number from ${least} to ${most}`)

/**
 * Reads settings as a schema has them.
 *
 * @throws ConfigError naming the first that does not hold.
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

/**
 * Settings whose names other programs use, too, or nearly: `LOGLEVEL` and `MONGO_URI` may well be meant for somebody else, so
 * that what resembles one of these is warned of, and does not stop the start.
 */
const COMMON = new Set([
  'PORT',
  'HOST',
  'SEED',
  'NETWORK',
  'DATA_DIR',
  'LOG_LEVEL',
  'LOG_REQUESTS',
  'MONGO_URL',
  'CONTENT_TYPES',
])
/** So short that almost anything resembles them: `POST`, `GHOST`, `SEEDS`. */
const TOO_SHORT = 5

/** A variable of the environment that is no setting and resembles one. */
export interface Misspelling {
  name: string
  setting: string
  /** Whether no other program is likely to have a variable of that name. */
  isCertain: boolean
}

/**
 * Finds variables that were probably meant to be a setting: a letter or two apart (`PROFIL`, `MAX_BODY_BYTE`), or one whose name
 * goes on where the other ends (`CHAIN_TRACKER_URL`, `SYNC_TIMEOUT`). What is left: everything of the environment that
 * resembles no setting, which is not ours to judge.
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
    .filter((setting) => setting.length > TOO_SHORT)
    .map((setting) => ({ setting, apart: distance(name, setting) }))
    .filter(({ setting, apart }) => apart <= (setting.length < 9 ? 1 : 2))
    .sort((one, other) => one.apart - other.apart)
  if (near[0] !== undefined) return near[0].setting
  const longer = known.find((setting) => continues(setting, name))
  // Of several that it begins with, the one that it has most of.
  const shorter = known.filter((setting) => continues(name, setting))
  return longer ?? shorter.sort((one, other) => other.length - one.length)[0]
}

/** Whether the longer of two names is the shorter one and another word; of two words at least, for `MAX` is everybody's. */
function continues(longer: string, shorter: string): boolean {
  return shorter.includes('_') && longer.startsWith(`${shorter}_`)
}
