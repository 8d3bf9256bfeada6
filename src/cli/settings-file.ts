import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { messageOf } from '../../backend/src/protocol/coded-error.js'
import { ConfigError } from '../server/config/errors.js'

/** The file with the settings of this folder, one a line as in `minetree.env.example`; the environment takes precedence. */
export const SETTINGS_FILE = 'minetree.env'

/**
 * The commands of a node's operator, in its folder. All others run in any folder, which may be a stranger's, such as a cloned
 * site: its file must not decide what a name is checked against, where payments are kept, or what code Node.js loads
 * (`NODE_OPTIONS`, which its worker threads read again).
 */
const OF_A_NODE = new Set([
  'serve',
  'status',
  'import',
  'crawl',
  'check',
  'copy',
  'build-index',
  'setting',
  'purge',
  'prune',
  'block',
  'unblock',
  'blocked',
  'advertise',
])
/** The settings for all other commands: where the node of this folder listens, and which trees it follows. */
const FOR_ALL = new Set(['PORT', 'PROFILE'])

/**
 * Puts those settings of the file that a command may use into the environment, if there is a file.
 *
 * @returns An error if the file exists but cannot be read.
 */
export function loadSettingsFile(command: string | undefined): ConfigError | undefined {
  try {
    const text = readFileSync(SETTINGS_FILE, 'utf8').replace(/^\ufeff/, '')
    const line = lineWithoutSetting(text)
    // The line may hold a secret, so it is not quoted.
    if (line !== undefined)
      return new ConfigError(`${SETTINGS_FILE}: line ${line} is not NAME=value: correct or remove it`)
    for (const [name, value] of Object.entries(parseEnv(text)))
      if (FOR_ALL.has(name) || OF_A_NODE.has(command ?? '')) process.env[name] ??= value
    return undefined
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    const reason = messageOf(cause)
    return new ConfigError(`${SETTINGS_FILE} cannot be read: ${reason}: make it readable, or remove it`, {
      cause,
    })
  }
}

/** The number of the first line that `parseEnv` would skip: neither a setting, nor a comment, nor within a quoted value. */
export function lineWithoutSetting(text: string): number | undefined {
  const at = text
    .replace(/^[ \t]*#.*$/gm, '')
    .replace(/=[ \t]*(?:"[^"]*"|'[^']*'|`[^`]*`)/g, (value) => `=${value.replace(/[^\n]/g, '')}`)
    .split('\n')
    .findIndex((line) => !/^\s*(?:#.*|(?:export\s+)?[\w.-]+\s*=.*)?\s*$/.test(line))
  return at < 0 ? undefined : at + 1
}
