/**
 * The parts of a connection string of MongoDB. It is no URL: it may name several hosts
 * (https://www.mongodb.com/docs/manual/reference/connection-string/). User, password and options are left to the driver.
 */
const PARTS =
  /^(?<scheme>mongodb(?:\+srv)?):\/\/(?:(?<user>[^/?#@]*)@)?(?<hosts>[^/?#@]+)\/(?<database>[^/?#.\s$"\\]{1,63})(?:\?(?<options>[^#\s]*))?$/

/** Whether the text is one that names a database. */
export function isMongoUrl(text: string): boolean {
  return PARTS.test(text)
}

/** Where it leads, without what opens it. */
export function mongoPlace(text: string): string {
  const { scheme, hosts, database } = PARTS.exec(text)?.groups ?? {}
  return `${scheme}://${hosts}/${database}`
}

/** The names of the options in it, in lower case: their case says nothing. */
export function mongoOptions(text: string): Set<string> {
  const { options } = PARTS.exec(text)?.groups ?? {}
  return new Set([...new URLSearchParams(options).keys()].map((name) => name.toLowerCase()))
}

/** Whatever in it nobody is to read: the password, and options that are as good as one. As written, and as meant. */
export function mongoSecrets(text: string): string[] {
  const { user = '', options } = PARTS.exec(text)?.groups ?? {}
  const [, password = ''] = /^[^:]*:(.*)$/.exec(user) ?? []
  const secret = [...new URLSearchParams(options)].filter(([name]) => SECRET.test(name))
  return [password, ...secret.map(([, value]) => value)]
}

const SECRET = /password|^authMechanismProperties$/i
