import { type Logger, pino } from 'pino'
import type { Config } from '../server/config/config.js'
import { createLogger } from '../server/telemetry/logger.js'
import { escapeControlCharsInLines, withTexts } from '../server/telemetry/public-text.js'
import { hasColors } from './output.js'

/**
 * The log, on one of the standard streams and written synchronously: readable text on a terminal, one JSON object per line
 * elsewhere and with `--json`.
 */
export async function openLog(options: {
  to: 'stdout' | 'stderr'
  level: Config['logLevel']
  json: boolean
  hideSecrets: (text: string) => string
  /** Called before each line, to erase other output on the terminal. */
  beforeLine?: () => void
}): Promise<Logger> {
  const { to, level, json, hideSecrets, beforeLine } = options
  const stream = process[to]
  const destination = pino.destination({ fd: to === 'stdout' ? 1 : 2, sync: true })
  const format = stream.isTTY && !json ? await readable(hasColors(stream, process.env)) : undefined
  return createLogger({
    level,
    hideSecrets,
    write(line) {
      beforeLine?.()
      destination.write(format === undefined ? line : format(line))
    },
  })
}

/** Formats a line of the log as readable text. */
export async function readable(colorize: boolean): Promise<(line: string) => string> {
  // Loaded on demand: most processes write JSON.
  const { prettyFactory } = await import('pino-pretty')
  const format = prettyFactory({
    colorize,
    translateTime: 'SYS:HH:MM:ss.l',
    ignore: 'pid,hostname',
    singleLine: true,
  })
  // Parsing JSON removes its escapes: control characters must be escaped again for a terminal.
  return (line) => format(withTexts(JSON.parse(line), escapeControlCharsInLines))
}
