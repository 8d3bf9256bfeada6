import { type Logger, pino } from 'pino'
import type { Config } from '../config/config.js'
import { HIDDEN } from '../config/redaction.js'
import { cut, escapeControlChars } from './public-text.js'

/** The most characters of a text that are logged: clients control the length of some. */
const MAX_TEXT = 1000
const MAX_STACK = 8000
/** The most fields of an object or elements of a list that are logged, and the greatest depth of objects. */
const MAX_FIELDS = 50
const MAX_DEPTH = 6

const SECRET_FIELD =
  /^(?:authorization|cookie|admin_?token|server_?private_?key|arc_?api_?key|api_?key|wif)$/i

export interface LoggerSettings {
  level: Config['logLevel']
  /** Removes secrets from a text; by default, there are none. */
  hideSecrets?: (text: string) => string
  /** Receives each line, with its line feed. */
  write(line: string): void
}

/**
 * A log of JSON lines. Every entry is one line, without secrets, without characters that a terminal would interpret or
 * hide, and with bounded texts. All of that happens when a line is written, so callers need not care.
 */
export function createLogger({ level, hideSecrets = (text) => text, write }: LoggerSettings): Logger {
  const clean = (line: string): string => JSON.stringify(cleaned(recordIn(line), { hideSecrets }))
  return pino(
    { level, serializers: { err: errorRecord } },
    { write: (line) => write(`${escapeControlChars(clean(line))}\n`) },
  )
}

/** The record of a line. pino does not escape field names, so a quote in one breaks the line. */
function recordIn(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return { level: pino.levels.values.error, time: Date.now(), line, msg: 'a log line is not JSON' }
  }
}

/** The fields that every error has: those that libraries add may contain any input. */
function errorRecord(error: unknown, depth = 0): unknown {
  if (typeof error !== 'object' || error === null || depth > MAX_DEPTH) return error
  const { name, message, stack, code, cause } = error as Partial<Error> & { code?: unknown }
  return { type: name, message, stack, code, cause: errorRecord(cause, depth + 1) }
}

interface Cleaning {
  hideSecrets: (text: string) => string
  field?: string
  depth?: number
}

function cleaned(value: unknown, { hideSecrets, field = '', depth = 0 }: Cleaning): unknown {
  if (SECRET_FIELD.test(field)) return HIDDEN
  // Before cutting: otherwise a part of a secret could remain.
  if (typeof value === 'string') return cut(hideSecrets(value), field === 'stack' ? MAX_STACK : MAX_TEXT)
  if (typeof value !== 'object' || value === null) return value
  if (depth > MAX_DEPTH) return '…'
  const inner = { hideSecrets, depth: depth + 1 }
  if (Array.isArray(value)) return value.slice(0, MAX_FIELDS).map((each) => cleaned(each, inner))
  const fields = Object.entries(value).slice(0, MAX_FIELDS)
  return Object.fromEntries(
    fields.map(([name, each]) => [
      cut(hideSecrets(name), MAX_TEXT),
      cleaned(each, { ...inner, field: name }),
    ]),
  )
}
