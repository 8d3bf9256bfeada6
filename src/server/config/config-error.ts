/** A setting that cannot be what it should be; the message is one line and names it. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}
