import { type Logger, pino } from 'pino'
import type { Config } from '../config/config.js'
import { HIDDEN } from '../config/redaction.js'
import { cut, escapeControlChars } from './escape-control-chars.js'

/** How many characters of a text are logged: some are as long as whoever sent them likes. */
const MAX_TEXT = 1000
/** Of the stack of an error. */
const MAX_STACK = 8000
/** How many fields of an object or elements of a list, and how deep objects in objects are logged. */
const MAX_FIELDS = 50
const MAX_DEPTH = 6

/** Fields that nobody logs on purpose. */
const SECRET_FIELD =
  /^(?:authorization|cookie|admin_?token|server_?private_?key|arc_?api_?key|api_?key|wif)$/i

export interface LoggerSettings {
  level: Config['logLevel']
  /** Takes secrets out of a text; without it, there are none. */
  hideSecrets?: (text: string) => string
  /** Takes each line, with its line feed. */
  write(line: string): void
}

/**
 * A log of JSON lines. Whatever is told to it, a line is one line, holds none of the secrets, no character that a terminal
 * obeys or does not show, and no more of a text than a bound. That is seen to where a line is written, so that nobody who
 * logs has to think of it.
 */
export function createLogger({ level, hideSecrets = (text) => text, write }: LoggerSettings): Logger {
  const written = (line: string): string => JSON.stringify(plain(recordIn(line), { hideSecrets }))
  return pino(
    { level, serializers: { err: errorRecord } },
    { write: (line) => write(`${escapeControlChars(written(line))}\n`) },
  )
}

/** What stands in a line. pino takes the names of fields as they are, so that one with a quote in it breaks the line. */
function recordIn(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return { level: pino.levels.values.error, time: Date.now(), line, msg: 'a log line is not JSON' }
  }
}

/** Of an error, what every one has: the fields that libraries add may hold all that they were given. */
function errorRecord(error: unknown, depth = 0): unknown {
  if (typeof error !== 'object' || error === null || depth > MAX_DEPTH) return error
  const { name, message, stack, code, cause } = error as Partial<Error> & { code?: unknown }
  return { type: name, message, stack, code, cause: errorRecord(cause, depth + 1) }
}

interface Cleaning {
  hideSecrets: (text: string) => string
  /** The name of the field that it is in. */
  field?: string
  depth?: number
}

function plain(value: unknown, { hideSecrets, field = '', depth = 0 }: Cleaning): unknown {
  if (SECRET_FIELD.test(field)) return HIDDEN
  // Before it is cut: of a secret that a cut goes through, a part would be left.
  if (typeof value === 'string') return cut(hideSecrets(value), field === 'stack' ? MAX_STACK : MAX_TEXT)
  if (typeof value !== 'object' || value === null) return value
  if (depth > MAX_DEPTH) return '…'
  const inner = { hideSecrets, depth: depth + 1 }
  if (Array.isArray(value)) return value.slice(0, MAX_FIELDS).map((each) => plain(each, inner))
  const fields = Object.entries(value).slice(0, MAX_FIELDS)
  return Object.fromEntries(
    fields.map(([name, each]) => [cut(hideSecrets(name), MAX_TEXT), plain(each, { ...inner, field: name })]),
  )
}
