import { ConfigError } from '../server/config/errors.js'

/** The settings of this folder, one a line as in `minetree.env.example`; the environment goes first. */
const SETTINGS_FILE = 'minetree.env'

/**
 * Puts the settings of the file into the environment, where there is one.
 *
 * @returns Why it cannot be read, if it is there.
 */
export function loadSettingsFile(): ConfigError | undefined {
  try {
    process.loadEnvFile(SETTINGS_FILE)
    return undefined
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException
    if (code === 'ENOENT') return undefined
    return new ConfigError(`${SETTINGS_FILE} cannot be read: ${message}: make it readable, or remove it`, {
      cause,
    })
  }
}
