import { type HierarchyRectangularNode, hierarchy, partition } from 'd3-hierarchy'
import { arc } from 'd3-shape'
import type { VNode } from 'preact'
import type { Branch } from '../../backend/src/read/charts.js'
import { count, counted } from './text.js'

/** How many levels below its middle the map has. */
export const LEVELS = 3
/** What grows from smaller branches is too thin to see: the branch itself is 2 to 5 pixels wide. */
export const LEAST_SHARE = 1 / 120

const SIZE = 400
/** The width of each ring, and the radius of the middle. */
const RING = SIZE / 2 / (LEVELS + 1)
/** Of a character at the font size of the style sheet. */
const LABEL = { width: 8, height: 11 }

type Arc = HierarchyRectangularNode<Branch>

const shapeOf = arc<Arc>()
  .startAngle(({ x0 }) => x0)
  .endAngle(({ x1 }) => x1)
  .innerRadius(({ depth }) => depth * RING)
  .outerRadius(({ depth }) => (depth + 1) * RING - 1)
  .digits(1)

/**
 * The tree around a prefix: each ring is one character more, and an arc is as long as there are names that begin with it. For those who see
 * and point: a list of the same branches is beside it, so neither readers of screens nor the keyboard have to pass through hundreds
 * of arcs.
 */
export function Sunburst({ root }: { root: Branch }): VNode {
  const tree = hierarchy(root, ({ branches }) => branches)
  // What is the name of the branch itself, or too small to be followed, is left open.
  const counts = tree.each((node) => Object.assign(node, { value: node.data.names }))
  const arcs = partition<Branch>().size([2 * Math.PI, LEVELS + 1])(counts)
  return (
    <svg class="sunburst" viewBox={`${-SIZE / 2} ${-SIZE / 2} ${SIZE} ${SIZE}`} aria-hidden="true">
      {arcs
        .descendants()
        .filter(({ depth, x0, x1 }) => depth > 0 && x1 - x0 > 2 * Math.PI * (LEAST_SHARE / 2))
        .map((each) => (
          <Wedge key={each.data.domain} arc={each} />
        ))}
      <Middle root={root} />
    </svg>
  )
}

function Wedge({ arc }: { arc: Arc }): VNode {
  const { domain, names } = arc.data
  const [x, y] = shapeOf.centroid(arc)
  return (
    <a href={names > 1 ? `/tree?prefix=${domain}` : `/name/${domain}`} tabindex={-1}>
      <title>{`${domain}: ${counted(names, 'name')}`}</title>
      <path class={`ring-${arc.depth}`} d={shapeOf(arc) ?? ''} />
      {hasRoom(arc) && (
        <text class={`on-${arc.depth}`} x={x.toFixed(1)} y={y.toFixed(1)}>
          {domain.slice(-1)}
        </text>
      )}
    </a>
  )
}

/** Whether a character fits into an arc, at the angle of its middle. */
function hasRoom({ x0, x1, depth }: Arc): boolean {
  const middle = (x0 + x1) / 2
  const [sine, cosine] = [Math.abs(Math.sin(middle)), Math.abs(Math.cos(middle))]
  return (x1 - x0) * (depth + 0.5) * RING >= LABEL.width * cosine + LABEL.height * sine
}

/** The prefix itself, which leads back by one character. */
function Middle({ root: { domain, names } }: { root: Branch }): VNode {
  const circle = (
    <>
      <circle r={RING - 3} />
      <text y={-8}>{domain === '' ? 'root' : domain.length > 7 ? `…${domain.slice(-6)}` : domain}</text>
      <text class="count" y={12}>
        {count(names)}
      </text>
    </>
  )
  if (domain === '') return <g class="middle">{circle}</g>
  const parent = domain.slice(0, -1)
  return (
    <a class="middle" href={parent === '' ? '/tree' : `/tree?prefix=${parent}`} tabindex={-1}>
      <title>{parent === '' ? 'Back to the root' : `Back to ${parent}`}</title>
      {circle}
    </a>
  )
}
