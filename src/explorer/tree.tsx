import type { VNode } from 'preact'
import { type Dependency, dependency } from '../../backend/src/graph/dependencies.js'
import { MAX_NAME_LENGTH, NAME_CHARACTERS } from '../../backend/src/protocol/mine-node.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import type { ListedNode } from '../../backend/src/read/listings.js'
import { renderPage, type Site } from './page.js'
import { Card, Empty, Facts, Hex } from './parts.js'
import type { Explorer, MadePage } from './reads.js'
import { count, counted } from './text.js'

/** The tree below a prefix. Undefined if nobody has mined that far. */
export function treePage({ store, site, tree }: Explorer, prefix: string): MadePage | undefined {
  const children = store.listings.childNodes(prefix)
  const node = store.names.liveNode(prefix)
  const isThere = node !== undefined || children.length > 0
  if (prefix !== '' && !isThere && store.names.originOf(prefix) === undefined) return undefined
  const free = NAME_CHARACTERS.length - children.length
  const html = renderPage({
    site,
    title: prefix === '' ? 'The tree' : `The tree below ${prefix}`,
    description: 'The tree of mined names: each node is a prefix, and each prefix a name.',
    section: 'tree',
    path: prefix === '' ? '/tree' : `/tree?prefix=${prefix}`,
    children: (
      <>
        <div class="head">
          <h1>The tree</h1>
          <p class="lede">
            Each node is a prefix, and each prefix is a name. Whoever finds a proof of work for a free
            character grows the tree by one.
          </p>
        </div>
        <div class="two">
          <Card
            title={
              prefix === '' ? 'From the root' : `From the root to ${prefix.length > 24 ? 'here' : prefix}`
            }
          >
            <Branch prefix={prefix}>
              {children.length === 0 ? (
                <li>
                  <Empty>
                    {site.catchingUp ? 'Nothing is found here yet.' : 'Nothing has grown from here yet.'}
                  </Empty>
                </li>
              ) : (
                children.map((child) => <Child key={child.domain} child={child} />)
              )}
            </Branch>
          </Card>
          <div class="stack">
            <section class="card" aria-label="Map">
              <TreeMap prefix={prefix} children={children} />
              <p class="legend">
                <span>{counted(children.length, 'branch', 'branches')} here</span>
                <span>
                  {counted(
                    children.reduce((sum, each) => sum + each.children, 0),
                    'twig',
                  )}{' '}
                  beyond
                </span>
              </p>
            </section>
            <Card title={prefix === '' ? 'Mine from the root' : 'Mine on from here'}>
              <Keys prefix={prefix} taken={new Set(children.map(({ domain }) => domain))} site={site} />
              <div class="legend">
                {site.catchingUp ? (
                  <span>What is free is not known yet</span>
                ) : (
                  <span>
                    <i class="free" />
                    {counted(free, 'character is', 'characters are')} free
                  </span>
                )}
                <span>
                  <i />
                  {count(children.length)} taken
                </span>
              </div>
              {node && !site.catchingUp && (
                <Facts
                  rows={[
                    [
                      'Live node',
                      // Nodes are no ordinals.
                      <Hex
                        key="node"
                        text={formatOutpoint(node)}
                        what="live node"
                        href={`/tx/${node.txid}`}
                      />,
                    ],
                    ['Work', tree && `${tree.difficulty} bits a character`],
                  ]}
                />
              )}
            </Card>
          </div>
        </div>
      </>
    ),
  })
  return { html, dependsOn: treeDependencies(children, node) }
}

/** The children of a node change with the node, and their numbers with the nodes of the children. */
function treeDependencies(
  children: readonly ListedNode[],
  node: ListedNode['outpoint'],
): readonly Dependency[] {
  const nodes = [node, ...children.map(({ outpoint }) => outpoint)]
  return nodes.map((each) => (each === undefined ? dependency.all : dependency.spend(each)))
}

/** The way from the root to a prefix, each node below the one before, and what has grown from the last. */
function Branch({ prefix, children }: { prefix: string; children: VNode | VNode[] }): VNode {
  let inner = <ul class="branch">{children}</ul>
  for (let length = prefix.length; length >= 0; length--) {
    const domain = prefix.slice(0, length)
    // Of a long way, its two ends.
    if (length > 2 && length < prefix.length - 3) continue
    inner = (
      <ul class="branch">
        <li class="more">
          <a
            href={`/tree${domain === '' ? '' : `?prefix=${domain}`}`}
            aria-current={length === prefix.length ? 'true' : undefined}
          >
            <span class="knot" />
            <b>{domain === '' ? 'root' : domain}</b>
          </a>
          {inner}
        </li>
      </ul>
    )
  }
  return inner
}

function Child({ child: { domain, children } }: { child: ListedNode }): VNode {
  return (
    <li class={children > 0 ? 'more' : undefined}>
      <a href={children > 0 ? `/tree?prefix=${domain}` : `/name/${domain}`}>
        <span class="knot" />
        <b>{domain}</b>
        <span class="meta">{children === 0 ? 'a leaf' : counted(children, 'child', 'children')}</span>
      </a>
    </li>
  )
}

/** The names that are one character longer. */
export function namesAfter(prefix: string): string[] {
  return prefix.length >= MAX_NAME_LENGTH
    ? []
    : Array.from(NAME_CHARACTERS, (character) => prefix + character)
}

/**
 * All characters: a free one leads to mining it, a taken one to its name. Written as text, as these are half of the elements of
 * a page; no character of a name means anything in markup. While the host catches up, none is known to be free.
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
  return <ul class="keys" dangerouslySetInnerHTML={{ __html: keys }} />
}

const SIZE = 420
const CENTRE = SIZE / 2
const INNER = 132
const OUTER = 172

const round = (value: number): number => Math.round(value * 10) / 10

function place(angle: number, radius: number): [x: number, y: number] {
  return [round(CENTRE + radius * Math.sin(angle)), round(CENTRE - radius * Math.cos(angle))]
}

/** The node in the middle, its branches around it, and beyond each so many leaves as it has children. */
function TreeMap({ prefix, children }: { prefix: string; children: readonly ListedNode[] }): VNode {
  const step = (2 * Math.PI) / NAME_CHARACTERS.length
  const byCharacter = new Map(children.map((child) => [child.domain.slice(prefix.length), child]))
  let [boughs, twigs, leaves, bare] = ['', '', '', '']
  const nodes: VNode[] = []
  for (const [at, character] of Array.from(NAME_CHARACTERS).entries()) {
    const child = byCharacter.get(character)
    const angle = at * step
    const [x, y] = place(angle, INNER)
    if (child === undefined) {
      bare += `M${place(angle, INNER)}h0`
      continue
    }
    boughs += `M${CENTRE} ${CENTRE}L${x} ${y}`
    for (let leaf = 0; leaf < child.children; leaf++) {
      // Fanned out over the width of the branch, in as many rows as it takes.
      const row = Math.floor(leaf / 6)
      const inRow = Math.min(6, child.children - row * 6)
      const offset = ((leaf % 6) - (inRow - 1) / 2) / 6
      const [lx, ly] = place(angle + offset * step * 0.92, OUTER + row * 6)
      if (row === 0) twigs += `M${x} ${y}L${lx} ${ly}`
      leaves += `M${lx} ${ly}h0`
    }
    nodes.push(
      <a key={character} href={child.children > 0 ? `/tree?prefix=${child.domain}` : `/name/${child.domain}`}>
        <title>{child.domain}</title>
        <circle cx={x} cy={y} r="10" />
        <text x={x} y={y}>
          {character}
        </text>
      </a>,
    )
  }
  return (
    <svg
      class="map"
      viewBox={`0 0 ${SIZE} ${SIZE}`}
      width={SIZE}
      height={SIZE}
      aria-label={`A map of ${counted(children.length, 'branch', 'branches')}, each with its children as leaves`}
    >
      <path class="twigs" d={twigs} />
      <path class="boughs" d={boughs} />
      <path class="bare" d={bare} />
      <path class="leaves" d={leaves} />
      {nodes}
      <circle class="root" cx={CENTRE} cy={CENTRE} r="9" />
    </svg>
  )
}
