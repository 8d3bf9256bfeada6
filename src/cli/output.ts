import type { Writable } from 'node:stream'
import picocolors from 'picocolors'
import { escapeControlChars } from '../server/telemetry/escape-control-chars.js'
import type { Failure } from './exit-codes.js'
import { ProgressLine } from './progress-line.js'

export type Colors = ReturnType<typeof picocolors.createColors>

/** A standard stream, or what stands for one in a test. */
export type Stream = Writable & { isTTY?: boolean; columns?: number }

/** Whether a stream gets colours: `NO_COLOR` and `FORCE_COLOR` decide, and otherwise whether it is a terminal. */
export function hasColors(stream: Stream, env: Record<string, string | undefined>): boolean {
  if (env.NO_COLOR) return false
  if (env.FORCE_COLOR !== undefined && env.FORCE_COLOR !== '')
    return env.FORCE_COLOR !== '0' && env.FORCE_COLOR !== 'false'
  return stream.isTTY === true && env.TERM !== 'dumb'
}

/** The longest line of a remark or an error, in characters: a screen or so, whatever a stranger has to say. */
const MAX_LINE_LENGTH = 500
/** How many lines of a stack are shown; V8 records ten frames unless told otherwise. */
const MAX_STACK_LINES = 50

/**
 * What a command writes: its result to standard output, as text or with `--json` as lines of JSON, and all else to
 * standard error. Remarks and errors may quote servers and files: they are escaped and cut here, so that no command has to
 * think of it.
 */
export class CommandOutput {
  readonly json: boolean
  /** For results. */
  readonly colors: Colors
  /** For all that goes to standard error. */
  readonly errorColors: Colors
  private readonly stdout: Stream
  private readonly stderr: Stream

  constructor(options: {
    stdout: Stream
    stderr: Stream
    json: boolean
    env: Record<string, string | undefined>
  }) {
    const { stdout, stderr, json, env } = options
    this.json = json
    this.stdout = stdout
    this.stderr = stderr
    this.colors = picocolors.createColors(!json && hasColors(stdout, env))
    this.errorColors = picocolors.createColors(hasColors(stderr, env))
  }

  /** A result, or one of several: the document on a line of its own with `--json`, else the lines of text. */
  result(document: object, ...lines: string[]): void {
    const written = this.json ? [escapeControlChars(JSON.stringify(document))] : lines
    this.stdout.write(written.map((line) => `${line}\n`).join(''))
  }

  /** A remark on the way. */
  note(text: string): void {
    this.stderr.write(`${this.errorColors.dim('minetree:')} ${shownLine(text)}\n`)
  }

  /** A remark that somebody should act on. */
  warn(text: string): void {
    this.stderr.write(`${this.errorColors.yellow('minetree:')} ${shownLine(text)}\n`)
  }

  /** Why the command failed; the text may have several lines, where it is a stack. */
  fail(text: string, { code, exitCode }: Failure): void {
    const lines = text.split('\n', MAX_STACK_LINES).map(shownLine)
    if (this.json) this.result({ error: lines[0], code, exitCode })
    this.stderr.write(`${this.errorColors.red('minetree:')} ${lines.join('\n')}\n`)
  }

  /** A line that shows how far a long work is; the caller ends it. */
  progress(): ProgressLine {
    return new ProgressLine(this.stderr, this.errorColors)
  }

  /** Where mining and the local network report to. */
  get progressStream(): Stream {
    return this.stderr
  }
}

/** A text as one line without harmful characters, at most so long: what is left out is counted. */
function shownLine(text: string): string {
  let shown = ''
  let taken = 0
  // By characters, so that neither a surrogate pair nor an escape is cut in half.
  for (const character of text) {
    const escaped = escapeControlChars(character)
    if (shown.length + escaped.length > MAX_LINE_LENGTH) {
      const left = text.length - taken
      return `${shown}… (${left.toLocaleString('en-US')} more characters)`
    }
    shown += escaped
    taken += character.length
  }
  return shown
}
