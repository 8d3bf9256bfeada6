import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { ConfigError } from '../server/config/errors.js'

/** The settings of this folder, one a line as in `minetree.env.example`; the environment goes first. */
export const SETTINGS_FILE = 'minetree.env'

/**
 * The commands of whoever runs a node, in its folder. All others run in any folder, which may be a stranger's, as of a site that
 * was cloned: its file must not say what a name is checked against, where payments are kept, or what code Node.js loads
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
/** What the others take: where the node of this folder listens, and which trees it follows. */
const FOR_ALL = new Set(['PORT', 'PROFILE'])

/**
 * Puts the settings of the file that a command may take into the environment, where there is one.
 *
 * @returns Why it cannot be read, if it is there.
 */
export function loadSettingsFile(command: string | undefined): ConfigError | undefined {
  try {
    for (const [name, value] of Object.entries(parseEnv(readFileSync(SETTINGS_FILE, 'utf8'))))
      if (FOR_ALL.has(name) || OF_A_NODE.has(command ?? '')) process.env[name] ??= value
    return undefined
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException
    if (code === 'ENOENT') return undefined
    return new ConfigError(`${SETTINGS_FILE} cannot be read: ${message}: make it readable, or remove it`, {
      cause,
    })
  }
}
