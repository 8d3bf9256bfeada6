import { FACT } from '../../../../backend/src/facts/log.js'
import {
  readRegisterFact,
  register,
  registerFact,
  SCORE_MARGIN,
  SETTINGS,
} from '../../../../backend/src/facts/registers.js'
import { appended } from '../../../../backend/src/facts/shared-log.js'
import { readUtf8 } from '../../../../backend/src/protocol/bytes.js'
import { formatOutpoint } from '../../../../backend/src/protocol/outpoint.js'
import { PROFILES } from '../../../../backend/src/protocol/profile.js'
import { ConfigError, readConfig } from '../../config/config.js'
import type { CommandLog } from './folder-log.js'
import { changeLog, type LogPlace, readLog } from './log-place.js'

/** The settings that can be changed by hand, with functions from a valid value to the text that the log keeps. */
const CHANGEABLE: Record<string, (value: string) => string | undefined> = {
  genesis(value) {
    const { deployment } = readConfig({ GENESIS: value })
    return deployment && formatOutpoint(deployment.genesis)
  },
  DIFFICULTY: (value) => value && String(readConfig({ DIFFICULTY: value }).terms.difficulty),
  NAME_MARKER: (value) => value && readUtf8(readConfig({ NAME_MARKER: value }).terms.marker),
  NAME_TLD: (value) => value && readConfig({ NAME_TLD: value }).terms.tld,
  PROFILE: (value) =>
    oneOf(
      'PROFILE',
      value,
      Object.values(PROFILES).map(({ nameContentType }) => nameContentType),
    ),
  COVENANT_VERSION: (value) => value && String(readConfig({ COVENANT_VERSION: value }).terms.covenantVersion),
  tracker: (value) => oneOf('tracker', value, ['headers', 'tracker', 'scripts-only']),
}

/** @throws ConfigError */
function oneOf(name: string, value: string, values: readonly string[]): string {
  if (values.includes(value)) return value
  throw new ConfigError(`${name} must be ${values.join(' or ')}, not ${JSON.stringify(value)}`)
}

/** @throws ConfigError if there is no setting of that name. */
export function assertSetting(name: string): void {
  if (!SETTINGS.has(name))
    throw new ConfigError(
      `a log has no setting ${JSON.stringify(name)}: it has ${Object.keys(CHANGEABLE).join(', ')}`,
    )
}

/** The text that the log keeps for a value. @throws ConfigError for a value that no start would accept. */
function keptText({ name, value }: { name: string; value: string }): string {
  assertSetting(name)
  const read = Object.hasOwn(CHANGEABLE, name) ? CHANGEABLE[name] : undefined
  if (read === undefined) throw new ConfigError(`${name} follows from the log, and cannot be set`)
  const kept = read(value)
  if (!kept && name !== 'NAME_TLD') throw new ConfigError(`${name} must not be empty`)
  return kept ?? ''
}

/** The settings in a log that derivation depends on. @throws as {@link readLog}. */
export async function readSettings(place: LogPlace): Promise<Map<string, string>> {
  return await readLog(place, async (log) => {
    const settings = new Map<string, string>()
    for (const name of [...SETTINGS].sort()) {
      const { value } = await latestIn(log, name)
      if (value !== undefined) settings.set(name, value)
    }
    return settings
  })
}

async function latestIn(log: CommandLog, name: string): Promise<{ n: number; value?: string }> {
  let latest: { n: number; value?: string } = { n: 0 }
  for (;;) {
    const { key } = registerFact(register.setting(name), latest.n + 1, '')
    const body = (await log.get(FACT.register, key))?.body
    if (body === undefined) return latest
    latest = { n: latest.n + 1, value: String(readRegisterFact({ key, body }).value) }
  }
}

/**
 * Replaces a setting in a log, after which the next start derives the index again; or raises the scores of a log that was restored by
 * other means than `minetree copy`.
 *
 * @throws ConfigError for a value that no start would accept; as {@link changeLog}.
 */
export async function writeSetting(
  place: LogPlace,
  change: { name: string; value: string } | 'restored',
): Promise<void> {
  const text = change === 'restored' ? '' : keptText(change)
  const name = change === 'restored' ? 'base' : change.name
  await changeLog(place, async (log) => {
    for (let isWritten = false; !isWritten; ) {
      const [last, { n, value }] = [await log.last(), await latestIn(log, name)]
      const next = change === 'restored' ? raisedBase({ base: Number(value ?? 0), last }) : text
      if (next === value) return
      // Fails if others have written meanwhile.
      isWritten = await log.insert(appended(last, [registerFact(register.setting(name), n + 1, next)]))
    }
  })
}

/** A base for scores, in milliseconds since 1970, that makes them higher than all that a log can have given. */
export function raisedBase({ base, last }: { base: number; last: number }): string {
  // A fact takes one millisecond of scores, one with many outputs a few more.
  return String(Math.max(base + last + SCORE_MARGIN, Date.now()))
}
