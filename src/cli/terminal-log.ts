import { type Logger, pino } from 'pino'
import type { Config } from '../server/config/config.js'
import { escapeControlCharsInLines } from '../server/telemetry/escape-control-chars.js'
import { createLogger } from '../server/telemetry/logger.js'
import { hasColors } from './output.js'

/**
 * The log, on one of the standard streams, each line out before the next thing happens: readable text on a terminal, one
 * JSON object a line anywhere else and with `--json`.
 */
export async function openLog({
  to,
  level,
  json,
  hideSecrets,
}: {
  to: 'stdout' | 'stderr'
  level: Config['logLevel']
  json: boolean
  hideSecrets: (text: string) => string
}): Promise<Logger> {
  const stream = process[to]
  const destination = pino.destination({ fd: to === 'stdout' ? 1 : 2, sync: true })
  const format = stream.isTTY && !json ? await readable(hasColors(stream, process.env)) : undefined
  return createLogger({
    level,
    hideSecrets,
    write: (line) => void destination.write(format === undefined ? line : format(line)),
  })
}

/** A formatter from a line of the log to the text that a person reads. */
export async function readable(colorize: boolean): Promise<(line: string) => string> {
  // Most processes write JSON and need none of this.
  const { prettyFactory } = await import('pino-pretty')
  const format = prettyFactory({
    colorize,
    translateTime: 'SYS:HH:MM:ss.l',
    ignore: 'pid,hostname',
    singleLine: true,
  })
  // Reading JSON undoes its escapes: what a terminal obeys must be escaped again.
  return (line) => format(escaped(JSON.parse(line)))
}

function escaped(value: unknown): unknown {
  if (typeof value === 'string') return escapeControlCharsInLines(value)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(escaped)
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [escapeControlCharsInLines(name), escaped(each)]),
  )
}
