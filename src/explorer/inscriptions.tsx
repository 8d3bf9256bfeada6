import type { ComponentChildren } from 'preact'
import { type Dependency, dependency } from '../../backend/src/graph/dependencies.js'
import { type Attribute, attribute, pageOf } from '../../backend/src/graph/listings.js'
import { formatOutpoint, type Outpoint } from '../../backend/src/protocol/outpoint.js'
import type { ListPlace } from '../../backend/src/read/listings.js'
import { kindOf } from './content-kinds.js'
import { renderPage } from './page.js'
import { type ContentView, Empty, Head, Hex, OutpointLink, Pager, Text, Tiles } from './parts.js'
import {
  contentsOf,
  contentViews,
  dependenciesOfChildren,
  dependenciesOfViews,
  type Explorer,
  type MadePage,
  TILE_QUOTE,
  writePlace,
} from './reads.js'
import { shortened, shown } from './text.js'

const PAGE = 24

/** Inscriptions, latest blocks first. A site is one inscription, without its files. */
export function newestInscriptionsPage(explorer: Explorer, after?: ListPlace): MadePage {
  const found = explorer.store.things.inscriptions({ limit: PAGE + 1, ...(after && { after }) })
  const { shown: outputs, end } = pageOf(found, PAGE)
  const tiles = contentViews(explorer, outputs, { quoted: TILE_QUOTE })
  return tilesPage(explorer, {
    title: 'Inscriptions',
    heading: 'Inscriptions',
    lede: 'Content written to outputs, newest first. Scripts run in a sandbox.',
    path: '/inscriptions',
    tiles,
    first: after && '/inscriptions',
    next: end && `/inscriptions?after=${writePlace(end)}`,
    feed: true,
    dependsOn: [dependency.inscriptions, ...dependenciesOfViews(tiles)],
  })
}

/** What the ordinals of a list have in common. */
export type Common =
  | { kind: 'address'; address: string; owner: string }
  | { kind: 'type'; type: string }
  | { kind: 'map'; key: string; value: string }
  | { kind: 'parent'; parent: Outpoint }

export function ordinalsPage(explorer: Explorer, common: Common, after?: Outpoint): MadePage {
  const { shared, path, title, heading, lede } = questionOf(common)
  const found = explorer.store.listings.ordinalsBy({
    attribute: shared,
    limit: PAGE + 1,
    ...(after && { after }),
  })
  const { shown: ordinals, end } = pageOf(found, PAGE)
  const names = namesOf(
    explorer,
    ordinals.flatMap(({ origin }) => origin ?? []),
  )
  const contents = contentViews(explorer, contentsOf(ordinals), { quoted: TILE_QUOTE })
  const views = new Map(contents.map((view) => [view.outpoint, view]))
  const tiles = ordinals.map(({ outpoint, contentOutpoint, content, origin }): ContentView => {
    const view = contentOutpoint && views.get(formatOutpoint(contentOutpoint))
    if (view === undefined || content === undefined)
      return { outpoint: formatOutpoint(outpoint), contentType: 'origin unknown', length: 0 }
    // A name claim shows the name.
    const name = origin && names.get(formatOutpoint(origin))
    return kindOf(content.contentType) === 'name' && name !== undefined ? { ...view, quote: name } : view
  })
  const separator = path.includes('?') ? '&' : '?'
  return tilesPage(explorer, {
    ...{ title, heading, lede, path, tiles },
    first: after && path,
    next: end && `${path}${separator}after=${formatOutpoint(end.outpoint)}`,
    dependsOn:
      common.kind === 'parent'
        ? [...dependenciesOfChildren(attribute.parent(common.parent), found), ...dependenciesOfViews(tiles)]
        : [dependency.all],
  })
}

function namesOf({ store }: Explorer, origins: Outpoint[]): Map<string, string> {
  const found = origins.length === 0 ? [] : store.names.genuineOrigins(origins)
  return new Map(found.map(({ outpoint, name }) => [formatOutpoint(outpoint), name]))
}

function questionOf(common: Common): {
  shared: Attribute
  path: string
  title: string
  heading: ComponentChildren
  lede: ComponentChildren
} {
  switch (common.kind) {
    case 'address': {
      const { address, owner } = common
      return {
        shared: attribute.owner(owner),
        path: `/address/${address}`,
        title: `Address ${shortened(address)}`,
        heading: 'Address',
        lede: (
          <>
            Ordinals that are locked to <Hex text={address} what="address" /> now.
          </>
        ),
      }
    }
    case 'type':
      return {
        shared: attribute.contentType(common.type),
        path: `/type?${new URLSearchParams({ type: common.type })}`,
        title: shown(common.type, 40),
        heading: 'By type',
        lede: (
          <>
            Ordinals whose content is <Text text={common.type} most={120} /> now.
          </>
        ),
      }
    case 'map':
      return {
        shared: attribute.map(common.key, common.value),
        path: `/map?${new URLSearchParams({ key: common.key, value: common.value })}`,
        title: shown(`${common.key}: ${common.value}`, 40),
        heading: 'By metadata',
        lede: (
          <>
            Ordinals with <Text text={common.key} most={80} /> = <Text text={common.value} most={160} />.
          </>
        ),
      }
    case 'parent': {
      const parent = formatOutpoint(common.parent)
      return {
        shared: attribute.parent(common.parent),
        path: `/parent/${parent}`,
        title: 'Children',
        heading: 'Children',
        lede: (
          <>
            Ordinals that were inscribed under <OutpointLink outpoint={parent} />.
          </>
        ),
      }
    }
  }
}

function tilesPage(
  { site }: Explorer,
  page: {
    title: string
    heading: ComponentChildren
    lede: ComponentChildren
    path: string
    tiles: ContentView[]
    first: string | undefined
    next: string | undefined
    feed?: boolean
    dependsOn: readonly Dependency[]
  },
): MadePage {
  const { title, heading, lede, path, tiles, first, next, feed, dependsOn } = page
  const html = renderPage({
    site,
    title,
    description: 'Inscriptions, as this host has admitted them.',
    section: 'inscriptions',
    path,
    // Strangers choose keys and values, each of which has a page: search engines need none of them.
    isUnlisted: path.startsWith('/map') || path.startsWith('/type'),
    ...(feed && { feeds: [{ href: '/feeds/inscriptions.atom', title: 'Newest inscriptions' }] }),
    children: (
      <>
        <Head title={heading} lede={lede} />
        <div class="stack">
          {tiles.length === 0 ? <Empty>There is nothing here.</Empty> : <Tiles contents={tiles} />}
          <Pager first={first} next={next} />
        </div>
      </>
    ),
  })
  return { html, dependsOn }
}
