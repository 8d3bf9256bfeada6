import { scaleLinear } from 'd3-scale'
import { area, line } from 'd3-shape'
import type { ComponentChildren, VNode } from 'preact'
import { Table } from './parts.js'

/* Charts as SVG, for the eye only: a sentence above and a table below each chart say the same. All of them use one colour. */

const WIDTH = 350
const HEIGHT = 210
const LEFT = 46
const BOTTOM = 36
const TOP = 10
const RIGHT = 12
const FLOOR = HEIGHT - BOTTOM
const VIEW_BOX = `0 0 ${WIDTH} ${HEIGHT}`

export function Figure({
  says,
  columns,
  rows,
  children,
}: {
  says: ComponentChildren
  columns: readonly string[]
  rows: readonly (readonly string[])[]
  children: ComponentChildren
}): VNode {
  return (
    <figure class="chart stack close">
      <figcaption>{says}</figcaption>
      {children}
      <details>
        <summary>As a table</summary>
        <Table
          columns={columns.map((head, at) => ({
            head,
            isEnd: at > 0,
            cell: (row: readonly string[]) => row[at],
          }))}
          rows={rows}
        />
      </details>
    </figure>
  )
}

export interface Point {
  x: number
  y: number
  title?: string
}

interface PlotOptions {
  points: readonly Point[]
  from: number
  to: number
  /** The label below a place on the x axis, by lines. */
  xText: (x: number) => readonly string[]
  yText: (y: number) => string
}

/** A sum that grows: an area below a line, with a step at each point. */
export function Growth({ points, ...options }: PlotOptions): VNode {
  const { x, y, axes } = plot({ points, ...options })
  const places = points.map((each): [number, number] => [x(each.x), y(each.y)])
  return (
    <svg viewBox={VIEW_BOX} aria-hidden="true">
      {axes}
      <path class="area" d={area().y0(FLOOR).digits(1)(places) ?? ''} />
      <path class="line" d={line().digits(1)(places) ?? ''} />
    </svg>
  )
}

/** A column for each point, starting at its x. @param options.step The width of a column, in units of x. */
export function Columns({ points, step, ...options }: PlotOptions & { step: number }): VNode {
  const { x, y, axes } = plot({ points, ...options })
  const width = Math.max(1, x(options.from + step) - x(options.from) - 1.5)
  return (
    <svg viewBox={VIEW_BOX} aria-hidden="true">
      {axes}
      {points.map((each) => (
        <rect
          key={each.x}
          class="column"
          x={x(each.x).toFixed(1)}
          y={y(each.y).toFixed(1)}
          width={width.toFixed(1)}
          height={Math.max(each.y > 0 ? 1 : 0, FLOOR - y(each.y)).toFixed(1)}
          rx={width > 8 ? 2 : 0}
        >
          {each.title !== undefined && <title>{each.title}</title>}
        </rect>
      ))}
    </svg>
  )
}

function plot({ points, from, to, xText, yText }: PlotOptions) {
  const x = scaleLinear([from, to], [LEFT, WIDTH - RIGHT])
  const most = Math.max(1, ...points.map((each) => each.y))
  const y = scaleLinear([0, most], [FLOOR, TOP]).nice(4)
  const axes = (
    <>
      {y
        .ticks(4)
        .filter(Number.isInteger)
        .map((tick) => (
          <g key={`y${tick}`}>
            <path class="rule" d={`M${LEFT} ${y(tick).toFixed(1)}H${WIDTH - RIGHT}`} />
            <text class="y" x={LEFT - 6} y={y(tick).toFixed(1)}>
              {yText(tick)}
            </text>
          </g>
        ))}
      {x
        .ticks(3)
        .filter(Number.isInteger)
        .map((tick) => (
          <text key={`x${tick}`} y={FLOOR + 14}>
            {xText(tick).map((text, at) => (
              <tspan key={text} x={x(tick).toFixed(1)} dy={at === 0 ? undefined : 13}>
                {text}
              </tspan>
            ))}
          </text>
        ))}
    </>
  )
  return { x, y, axes }
}

export interface Bar {
  label: string
  /** For each panel, the length of its bar and the text beside it. */
  values: readonly { value: number; text: string }[]
  /** The failed part of the first value: the end of its bar is red, and the text has the number. */
  failed?: number
}

const ROW = 30
/** The width of a character at a font size of 11 pixels. */
const CHARACTER = 6.4

/** Bars side by side, one panel for each of the values of a row. */
export function Bars({
  rows,
  panels,
  labels = 66,
}: {
  rows: readonly Bar[]
  panels: readonly string[]
  labels?: number
}): VNode {
  const width = (WIDTH - labels) / panels.length
  const top = panels.every((panel) => panel === '') ? 0 : 22
  const scales = panels.map((_, at) => {
    const most = Math.max(1, ...rows.map(({ values }) => values[at]?.value ?? 0))
    const text = Math.max(...rows.map(({ values }) => values[at]?.text.length ?? 0)) * CHARACTER + 16
    return scaleLinear([0, most], [0, width - text])
  })
  return (
    <svg class="bars" viewBox={`0 0 ${WIDTH} ${rows.length * ROW + top}`} aria-hidden="true">
      {panels.map((panel, at) => (
        <text key={panel} class="head" x={labels + at * width} y={10}>
          {panel}
        </text>
      ))}
      {rows.map(({ label, values, failed = 0 }, row) => (
        <g key={label}>
          <title>{label}</title>
          <text x={0} y={top + row * ROW + 14}>
            {label}
          </text>
          {values.map(({ value, text }, at) => {
            const x = labels + at * width
            const length = scales[at]?.(value) ?? 0
            const ofFailed = at === 0 ? (scales[at]?.(failed) ?? 0) : 0
            return (
              <g key={panels[at]}>
                <rect
                  class="column"
                  x={x}
                  y={top + row * ROW + 4}
                  width={Math.max(value > 0 ? 1.5 : 0, length).toFixed(1)}
                  height={18}
                  rx={3}
                />
                {ofFailed > 0 && (
                  <rect
                    class="failed"
                    x={(x + length - Math.max(2, ofFailed)).toFixed(1)}
                    y={top + row * ROW + 4}
                    width={Math.max(2, ofFailed).toFixed(1)}
                    height={18}
                  />
                )}
                <text class="value" x={(x + length + 6).toFixed(1)} y={top + row * ROW + 14}>
                  {text}
                </text>
              </g>
            )
          })}
        </g>
      ))}
    </svg>
  )
}
