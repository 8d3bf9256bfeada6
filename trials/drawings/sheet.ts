// Draws boxes, arrows and words as SVG: no more than the drawings of the documentation need.

export interface Point {
  x: number
  y: number
  /** How an arrow leaves or reaches it; across by default. */
  way?: 'across' | 'down'
}

export interface Box {
  x: number
  y: number
  width: number
  height: number
}

/** The meaning of a box: each has one colour in all drawings. */
type Tone = 'plain' | 'node' | 'name' | 'content' | 'chain'

interface BoxOptions {
  x: number
  y: number
  width: number
  /** By default, as high as its lines. */
  height?: number
  title?: string
  lines?: readonly string[]
  tone?: Tone
}

interface ArrowOptions {
  label?: string
  isDashed?: boolean
}

const FONT = { title: 14, line: 12.5 }
const LINE = 18
const PADDING = 12
/** The width of a character as a share of the font's size: above the average of the fonts that browsers choose. */
const CHARACTER = { title: 0.57, line: 0.535 }

/** Each scheme is readable on its own ground, whatever the scheme of the page around it. */
const STYLE = `
.ground{fill:#fbfaf7;stroke:#d9d5cb}
text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",sans-serif;fill:#23211c}
.title{font-size:${FONT.title}px;font-weight:600}
.line{font-size:${FONT.line}px;fill:#55514a}
.head{font-size:${FONT.title}px;font-weight:700;fill:#55514a}
.label{font-size:${FONT.line}px;fill:#55514a;stroke:#fbfaf7;stroke-width:5px;paint-order:stroke}
.plain{fill:#fff;stroke:#a8a296}
.node{fill:#e3f0e3;stroke:#4f8a55}
.name{fill:#fdeccb;stroke:#b9812a}
.content{fill:#e1ecf7;stroke:#4878a8}
.chain{fill:#ece6f5;stroke:#7b62a8}
.arrow{fill:none;stroke:#55514a;stroke-width:1.6}
.dashed{stroke-dasharray:5 4}
.tip{fill:#55514a}
@media (prefers-color-scheme:dark){
.ground{fill:#1a1917;stroke:#3a3833}
text{fill:#eeebe3}
.line,.head{fill:#b9b4a8}
.label{fill:#b9b4a8;stroke:#1a1917}
.plain{fill:#262421;stroke:#6d685e}
.node{fill:#203324;stroke:#6fae76}
.name{fill:#3b2e16;stroke:#d9a24c}
.content{fill:#1d2d3d;stroke:#74a4d4}
.chain{fill:#2d2540;stroke:#a48cd4}
.arrow{stroke:#b9b4a8}
.tip{fill:#b9b4a8}
}`

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
const rounded = (value: number): number => Math.round(value * 10) / 10

function requireRoom(text: string, kind: 'title' | 'line', room: number): void {
  const width = text.length * FONT[kind] * CHARACTER[kind]
  if (width > room) throw new Error(`"${text}" is about ${Math.ceil(width)} wide and has room for ${room}`)
}

/** The middle of a side of a box. */
export const leftOf = (box: Box): Point => ({ x: box.x, y: box.y + box.height / 2 })
export const rightOf = (box: Box): Point => ({ x: box.x + box.width, y: box.y + box.height / 2 })
export const topOf = (box: Box): Point => ({ x: box.x + box.width / 2, y: box.y, way: 'down' })
export const bottomOf = (box: Box): Point => ({ ...topOf(box), y: box.y + box.height })

/** Positions of boxes of one size side by side, or below each other. */
export function spread(options: { from: number; size: number; gap: number; count: number }): number[] {
  return Array.from(
    { length: options.count },
    (_, index) => options.from + index * (options.size + options.gap),
  )
}

export class Sheet {
  readonly #size: { width: number; height: number }
  readonly #words: { title: string; description: string }
  readonly #below: string[] = []
  readonly #above: string[] = []

  /** @param words The title and a description of the drawing, for people who cannot see it. */
  constructor(size: { width: number; height: number }, words: { title: string; description: string }) {
    this.#size = size
    this.#words = words
  }

  /** @throws Error if a line does not fit. */
  box({ x, y, width, height, title, lines = [], tone = 'plain' }: BoxOptions): Box {
    const rows = (title === undefined ? 0 : 1) + lines.length
    const box = { x, y, width, height: height ?? rows * LINE + 2 * PADDING - 4 }
    const { height: high } = box
    this.#below.push(`<rect class="${tone}" x="${x}" y="${y}" width="${width}" height="${high}" rx="8"/>`)
    let baseline = y + (high - rows * LINE) / 2 + 13.5
    const write = (text: string, kind: 'title' | 'line'): void => {
      requireRoom(text, kind, width - PADDING)
      this.#above.push(
        `<text class="${kind}" x="${rounded(x + width / 2)}" y="${rounded(baseline)}" text-anchor="middle">${escaped(text)}</text>`,
      )
      baseline += LINE
    }
    if (title !== undefined) write(title, 'title')
    for (const line of lines) write(line, 'line')
    return box
  }

  /** Words without a box; the point is on the baseline of the first line. @throws Error if they do not fit. */
  words(
    { x, y }: Point,
    lines: readonly string[],
    options: { kind?: 'head' | 'line'; anchor?: string } = {},
  ): void {
    const { kind = 'line', anchor = 'start' } = options
    const room = anchor === 'start' ? this.#size.width - x : 2 * Math.min(x, this.#size.width - x)
    for (const text of lines) requireRoom(text, kind === 'head' ? 'title' : 'line', room - PADDING)
    for (const [index, line] of lines.entries())
      this.#above.push(
        `<text class="${kind}" x="${rounded(x)}" y="${rounded(y + index * LINE)}" text-anchor="${anchor}">${escaped(line)}</text>`,
      )
  }

  /** A line from point to point, with corners where it has to bend, and a tip. */
  arrow(from: Point, to: Point, { label, isDashed = false }: ArrowOptions = {}): void {
    const x = (from.x + to.x) / 2
    const y = (from.y + to.y) / 2
    const [first, last] = [from.way ?? 'across', to.way ?? 'across']
    const bend = {
      across: { across: `H${rounded(x)}V${to.y}H${to.x}`, down: `H${to.x}V${to.y}` },
      down: { across: `V${to.y}H${to.x}`, down: `V${rounded(y)}H${to.x}V${to.y}` },
    }[first][last]
    const path = `M${from.x} ${from.y}${bend}`
    this.#below.push(`<path class="arrow${isDashed ? ' dashed' : ''}" d="${path}" marker-end="url(#tip)"/>`)
    if (label === undefined) return
    if (first === 'down') this.words({ x: x + 8, y: y + 4 }, [label])
    else this.words({ x, y: y - 8 }, [label], { anchor: 'middle' })
  }

  /** A dashed line without a tip. */
  line(from: Point, to: Point): void {
    this.#below.push(`<path class="arrow dashed" d="M${from.x} ${from.y}H${to.x}V${to.y}"/>`)
  }

  /** The SVG file. */
  svg(): string {
    const { width, height } = this.#size
    const { title, description } = this.#words
    return [
      `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title description">`,
      `<title id="title">${escaped(title)}</title>`,
      `<desc id="description">${escaped(description)}</desc>`,
      `<style>${STYLE}\n</style>`,
      '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path class="tip" d="M0 0L10 5L0 10z"/></marker></defs>',
      `<rect class="ground" x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="10"/>`,
      ...this.#below,
      ...this.#above,
      '</svg>',
      '',
    ].join('\n')
  }
}
