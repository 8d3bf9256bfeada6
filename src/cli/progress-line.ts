import { escapeControlChars } from '../server/telemetry/escape-control-chars.js'
import type { Colors, Stream } from './output.js'

/** Between two lines, in milliseconds: more often where one writes over the other. */
const EVERY = { terminal: 100, file: 10_000 }
const BAR_WIDTH = 24
const DEFAULT_COLUMNS = 80

export interface Progress {
  /** What is done, for a person: `1,204 of 3,500 transactions`. */
  text: string
  /** From 0 to 1, where it is known how much there is. */
  share?: number
}

/**
 * How far a long work is: on a terminal one line with a bar that is written over and is gone at the end; elsewhere a line
 * every ten seconds, so that a log shows that it goes on.
 */
export class ProgressLine {
  private readonly began = performance.now()
  private last: number
  private isShown = false

  constructor(
    private readonly stream: Stream,
    private readonly colors: Colors,
  ) {
    // Whatever is over soon leaves no line in a file.
    this.last = stream.isTTY ? Number.NEGATIVE_INFINITY : this.began
  }

  /** Called as often as anything moves: most calls cost a look at the clock. */
  update(progress: () => Progress): void {
    const now = performance.now()
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
    const room = Math.max(0, (this.stream.columns ?? DEFAULT_COLUMNS) - barWidth - clock.length - 3)
    this.stream.write(`\r\x1b[K${bar}${escapeControlChars(text).slice(0, room)}  ${this.colors.dim(clock)}`)
    this.isShown = true
  }

  /** Leaves no half line behind. */
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

/** A size for a person: `3.4 MiB`. */
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
