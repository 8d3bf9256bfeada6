import type { Writable } from 'node:stream'
import picocolors from 'picocolors'
import { monotonic } from '../../backend/src/protocol/monotonic.js'
import { escapeControlChars } from '../server/telemetry/public-text.js'

export type Colors = ReturnType<typeof picocolors.createColors>

export interface Failure {
  /** Whether commands throw it on purpose. For any other error, the stack says more than the message. */
  isExpected: boolean
  /** In capitals, for programs; the error's own if it has one. */
  code: string
  exitCode: number
}

/** A standard stream, or its replacement in a test. */
export type Stream = Writable & { isTTY?: boolean; columns?: number }

/** Whether a stream gets colours: `NO_COLOR` and `FORCE_COLOR` decide, and otherwise whether it is a terminal. */
export function hasColors(stream: Stream, env: Record<string, string | undefined>): boolean {
  if (env.NO_COLOR) return false
  if (env.FORCE_COLOR !== undefined && env.FORCE_COLOR !== '')
    return env.FORCE_COLOR !== '0' && env.FORCE_COLOR !== 'false'
  return stream.isTTY === true && env.TERM !== 'dumb'
}

/** The longest remark or error in characters: about a screenful, whatever strangers write. */
const MAX_LINE_LENGTH = 500
/** How many lines of a stack are shown; V8 records ten frames by default. */
const MAX_STACK_LINES = 50

/**
 * The output of a command: its result goes to standard output, as text or with `--json` as lines of JSON, everything else to
 * standard error. Remarks and errors may quote servers and files, so they are escaped and shortened here for all commands. No line
 * contains a secret of the settings or of the command line.
 */
export class CommandOutput {
  readonly json: boolean
  /** For results. */
  readonly colors: Colors
  /** For everything on standard error. */
  readonly errorColors: Colors
  private readonly stdout: Stream
  private readonly stderr: Stream
  private readonly hideSecrets: (text: string) => string

  constructor(options: {
    stdout: Stream
    stderr: Stream
    json: boolean
    env: Record<string, string | undefined>
    hideSecrets?: (text: string) => string
  }) {
    const { stdout, stderr, json, env, hideSecrets = (text) => text } = options
    this.hideSecrets = hideSecrets
    this.json = json
    this.stdout = stdout
    this.stderr = stderr
    this.colors = picocolors.createColors(!json && hasColors(stdout, env))
    this.errorColors = picocolors.createColors(hasColors(stderr, env))
  }

  /** A result, or one of several: with `--json` the document on one line, otherwise the lines of text. */
  result(document: object, ...lines: string[]): void {
    const hidden = (_: string, value: unknown): unknown =>
      typeof value === 'string' ? this.hideSecrets(value) : value
    const written = this.json
      ? [escapeControlChars(JSON.stringify(document, hidden))]
      : lines.map((line) => this.hideSecrets(line))
    this.stdout.write(written.map((line) => `${line}\n`).join(''))
  }

  note(text: string): void {
    this.stderr.write(`${this.errorColors.dim('minetree:')} ${this.shown(text)}\n`)
  }

  /** A remark that needs attention. */
  warn(text: string): void {
    this.stderr.write(`${this.errorColors.yellow('minetree:')} ${this.shown(text)}\n`)
  }

  private shown(text: string): string {
    return shownLine(this.hideSecrets(text))
  }

  /** The reason why the command failed; several lines if it is a stack. */
  fail(text: string, { code, exitCode }: Failure): void {
    const lines = text.split('\n', MAX_STACK_LINES).map((line) => this.shown(line))
    if (this.json) this.result({ error: lines[0], code, exitCode })
    this.stderr.write(`${this.errorColors.red('minetree:')} ${lines.join('\n')}\n`)
  }

  /** Shows progress while work runs. */
  async during<Result>(progress: () => Progress, work: () => Promise<Result>): Promise<Result> {
    return await this.showing(async (line) => {
      const ticking = setInterval(() => line.update(progress), EVERY.terminal)
      return await work().finally(() => clearInterval(ticking))
    })
  }

  /** Runs work that reports its own progress. */
  async showing<Result>(work: (line: ProgressLine) => Promise<Result>): Promise<Result> {
    const line = this.progress()
    try {
      return await work(line)
    } finally {
      line.end()
    }
  }

  /** A progress line, which the caller ends. */
  progress(): ProgressLine {
    return new ProgressLine(this.stderr, this.errorColors)
  }

  get progressStream(): Stream {
    return this.stderr
  }
}

/** Text as one line without control characters, shortened to a limit with a count of the remaining characters. */
function shownLine(text: string): string {
  let shown = ''
  let taken = 0
  // By character, so that neither a surrogate pair nor an escape is split.
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

/** The time between two updates, in milliseconds; shorter on a terminal, where a line overwrites the last. */
const EVERY = { terminal: 100, file: 10_000 }
const BAR_WIDTH = 24
const DEFAULT_COLUMNS = 80

export interface Progress {
  /** In words: `1,204 of 3,500 transactions`. */
  text: string
  /** From 0 to 1, if the total is known. */
  share?: number
}

/**
 * The progress of long work: on a terminal, one line with a bar that overwrites itself and disappears at the end;
 * elsewhere, a line every ten seconds, so that a log shows that the work continues.
 */
export class ProgressLine {
  private readonly began = monotonic()
  private last: number
  private isShown = false

  constructor(
    private readonly stream: Stream,
    private readonly colors: Colors,
  ) {
    // Short work leaves no line in a file.
    this.last = stream.isTTY ? Number.NEGATIVE_INFINITY : this.began
  }

  /** May be called very often: most calls only check the clock. */
  update(progress: () => Progress): void {
    const now = monotonic()
    if (now - this.last < (this.stream.isTTY ? EVERY.terminal : EVERY.file)) return
    this.last = now
    const { text, share } = progress()
    if (!this.stream.isTTY) {
      this.stream.write(`${escapeControlChars(share === undefined ? text : `${percent(share)} ${text}`)}\n`)
      return
    }
    const seconds = Math.floor((now - this.began) / 1000)
    const clock = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
    const bar = share === undefined ? '' : `${this.bar(share)} ${percent(share)}  `
    const barWidth = share === undefined ? 0 : BAR_WIDTH + percent(share).length + 3
    const room = Math.max(0, (this.stream.columns || DEFAULT_COLUMNS) - barWidth - clock.length - 3)
    this.stream.write(`\r\x1b[K${bar}${escapeControlChars(text).slice(0, room)}  ${this.colors.dim(clock)}`)
    this.isShown = true
  }

  end(): void {
    if (this.isShown) this.stream.write('\r\x1b[K')
    this.isShown = false
  }

  private bar(share: number): string {
    const done = Math.round(Math.min(1, Math.max(0, share)) * BAR_WIDTH)
    return `${this.colors.cyan('█'.repeat(done))}${this.colors.dim('░'.repeat(BAR_WIDTH - done))}`
  }
}

function percent(share: number): string {
  return `${Math.floor(Math.min(1, Math.max(0, share)) * 100)} %`.padStart(5)
}

/** `1204` as `1,204`. */
export function grouped(count: number): string {
  return count.toLocaleString('en-US')
}

/** A readable size: `3.4 MiB`. */
export function bytesText(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  let size = bytes
  let unit = 0
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024
    unit++
  }
  return `${unit === 0 ? size : size.toFixed(1)} ${units[unit]}`
}
