/**
 * The parts of a MongoDB connection string. It is not a URL: it may name several hosts
 * (https://www.mongodb.com/docs/manual/reference/connection-string/). The driver reads user, password and options.
 */
const PARTS =
  /^(?<scheme>mongodb(?:\+srv)?):\/\/(?:(?<user>[^/?#@]*)@)?(?<hosts>[^/?#@]+)\/(?<database>[^/?#.\s$"\\]{1,63})(?:\?(?<options>[^#\s]*))?$/

export function isMongoUrl(text: string): boolean {
  return PARTS.test(text)
}

/** The scheme, hosts and database, without credentials. */
export function mongoPlace(text: string): string {
  const { scheme, hosts, database } = PARTS.exec(text)?.groups ?? {}
  return `${scheme}://${hosts}/${database}`
}

/** The names of the URL's options, in lower case: they are case-insensitive. */
export function mongoOptions(text: string): Set<string> {
  const { options } = PARTS.exec(text)?.groups ?? {}
  return new Set([...new URLSearchParams(options).keys()].map((name) => name.toLowerCase()))
}

/** The secrets in a URL: the password, and options that contain one, as written and decoded. */
export function mongoSecrets(text: string): string[] {
  const { user = '', options } = PARTS.exec(text)?.groups ?? {}
  const [, password = ''] = /^[^:]*:(.*)$/.exec(user) ?? []
  const secret = [...new URLSearchParams(options)].filter(([name]) => SECRET.test(name))
  return [password, ...secret.map(([, value]) => value)]
}

const SECRET = /password|^authMechanismProperties$/i
