import { type HierarchyRectangularNode, hierarchy, partition } from 'd3-hierarchy'
import { arc } from 'd3-shape'
import type { VNode } from 'preact'
import { dependency } from '../../backend/src/graph/dependencies.js'
import { MAX_NAME_LENGTH, NAME_CHARACTERS } from '../../backend/src/protocol/mine-node.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import type { Branch } from '../../backend/src/read/charts.js'
import { renderPage, type Site } from './page.js'
import { Badge, Card, Empty, Facts, Head, Hex } from './parts.js'
import type { Explorer, MadePage } from './reads.js'
import { count, counted } from './text.js'

/** The tree below a prefix; undefined if nobody has mined that far. */
export function treePage({ store, site, tree }: Explorer, prefix: string): MadePage | undefined {
  const root = store.charts.branches({ domain: prefix, levels: LEVELS, share: LEAST_SHARE })
  const { branches, names } = root
  const node = store.names.liveNode(prefix)
  const isThere = node !== undefined || names > 0
  if (prefix !== '' && !isThere && store.names.originOf(prefix) === undefined) return undefined
  const free = NAME_CHARACTERS.length - branches.length
  const html = renderPage({
    site,
    title: prefix === '' ? 'The tree' : `The tree below ${prefix}`,
    description: 'The tree of mined names: each node is a prefix, and each prefix a name.',
    section: 'tree',
    path: prefix === '' ? '/tree' : `/tree?prefix=${prefix}`,
    children: (
      <>
        <Head
          title="The tree"
          lede="Each node is a prefix, and each prefix is a name. Whoever finds a proof of work for a free character grows the tree by one."
        />
        <div class="split">
          <div class="stack">
            <Card
              title={`${counted(names, 'name')}${prefix === '' ? '' : ` below ${prefix.length > 24 ? 'here' : prefix}`}`}
              id="map"
              link={{ href: '/charts', text: 'More charts' }}
            >
              {names > 0 && <Sunburst root={root} />}
              <p class="hint">
                {branches.length === 0
                  ? 'Nothing has grown from here yet.'
                  : 'Read from the middle outwards: each ring is one character more. A long arc has many names below it; press it to go there.'}
              </p>
            </Card>
            <Card title={prefix === '' ? 'Mine from the root' : 'Mine on from here'}>
              <Keys prefix={prefix} taken={new Set(branches.map(({ domain }) => domain))} site={site} />
              <div class="cluster">
                {site.catchingUp ? (
                  <Badge kind="wait">The free characters are not known yet</Badge>
                ) : (
                  <Badge kind="good">{counted(free, 'character is', 'characters are')} free</Badge>
                )}
                <Badge kind="plain">{count(branches.length)} taken</Badge>
              </div>
              {node && !site.catchingUp && (
                <Facts
                  facts={{
                    'Live node': // Nodes are no ordinals.
                      <Hex text={formatOutpoint(node)} what="live node" href={`/tx/${node.txid}`} />,
                    Work: tree && `${tree.difficulty} bits a character`,
                  }}
                />
              )}
            </Card>
          </div>
          <Card
            title={
              prefix === '' ? 'From the root' : `From the root to ${prefix.length > 24 ? 'here' : prefix}`
            }
          >
            <Branches prefix={prefix}>
              {branches.length === 0 ? (
                <li>
                  <Empty>
                    {site.catchingUp ? 'Nothing found here yet.' : 'Nothing has grown from here yet.'}
                  </Empty>
                </li>
              ) : (
                branches.map((child) => <Child key={child.domain} child={child} />)
              )}
            </Branches>
          </Card>
        </div>
      </>
    ),
  })
  const spent = node === undefined ? dependency.all : dependency.spend(node)
  return { html, dependsOn: [dependency.names, spent] }
}

/** The path from the root to a prefix, each node below the one before, and the branches of the last. */
function Branches({ prefix, children }: { prefix: string; children: VNode | VNode[] }): VNode {
  let inner = <ul class="branch">{children}</ul>
  for (let length = prefix.length; length >= 0; length--) {
    const domain = prefix.slice(0, length)
    // Only both ends of a long path.
    if (length > 2 && length < prefix.length - 3) continue
    inner = (
      <ul class="branch">
        <li class="more">
          <a
            class="cluster"
            href={`/tree${domain === '' ? '' : `?prefix=${domain}`}`}
            aria-current={length === prefix.length ? 'true' : undefined}
          >
            <b class="name">{domain === '' ? 'root' : domain}</b>
          </a>
          {inner}
        </li>
      </ul>
    )
  }
  return inner
}

function Child({ child: { domain, names } }: { child: Branch }): VNode {
  return (
    <li class={names > 1 ? 'more' : undefined}>
      <a class="cluster" href={names > 1 ? `/tree?prefix=${domain}` : `/name/${domain}`}>
        <b class="name">{domain}</b>
        <small>{names === 1 ? 'a leaf' : counted(names, 'name')}</small>
      </a>
    </li>
  )
}

export function namesAfter(prefix: string): string[] {
  return prefix.length >= MAX_NAME_LENGTH
    ? []
    : Array.from(NAME_CHARACTERS, (character) => prefix + character)
}

/**
 * All characters: a free one links to mining it, a taken one to its name. Written as text, as these are half of a page's
 * elements; no character of a name is special in markup. While the host catches up, none is known to be free.
 */
export function Keys({
  prefix,
  taken,
  site: { catchingUp },
}: {
  prefix: string
  taken: ReadonlySet<string>
  site: Pick<Site, 'catchingUp'>
}): VNode {
  let keys = ''
  for (const character of NAME_CHARACTERS) {
    const name = prefix + character
    keys += taken.has(name)
      ? `<li><a href="/name/${name}" title="${name} is taken"><span class="vh">${prefix}</span>${character}<span class="vh">, taken</span></a></li>`
      : catchingUp
        ? `<li><span>${character}</span></li>`
        : `<li><a class="free" href="/mine?name=${name}" title="Mine ${name}"><span class="vh">Mine ${prefix}</span>${character}</a></li>`
  }
  return <ul class="keys mono grid" dangerouslySetInnerHTML={{ __html: keys }} />
}

const LEVELS = 3
/** Smaller branches are not split further, which would be too thin to see: they are 2 to 5 pixels wide themselves. */
const LEAST_SHARE = 1 / 120

const SIZE = 400
/** The width of each ring, and the radius of the middle. */
const RING = SIZE / 2 / (LEVELS + 1)
/** The size of a character at the font size of the style sheet. */
const LABEL = { width: 8, height: 11 }

type Arc = HierarchyRectangularNode<Branch>

const shapeOf = arc<Arc>()
  .startAngle(({ x0 }) => x0)
  .endAngle(({ x1 }) => x1)
  .innerRadius(({ depth }) => depth * RING)
  .outerRadius(({ depth }) => (depth + 1) * RING - 1)
  .digits(1)

/**
 * The tree around a prefix: each ring is one character more, and the length of an arc is the number of names that begin with it.
 * For pointing devices only: a list of the same branches is beside it, so that screen readers and keyboards need not pass through
 * hundreds of arcs.
 */
function Sunburst({ root }: { root: Branch }): VNode {
  const tree = hierarchy(root, ({ branches }) => branches)
  // The name of the branch itself and branches too small to follow leave gaps.
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
        <text x={x.toFixed(1)} y={y.toFixed(1)}>
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

/** The prefix itself, which links to its parent. */
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
