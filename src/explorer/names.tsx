import { dependency } from '../../backend/src/graph/dependencies.js'
import { pageOf } from '../../backend/src/graph/listings.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import type { ListPlace } from '../../backend/src/read/listings.js'
import type { NameThing } from '../../backend/src/read/things.js'
import { renderPage } from './page.js'
import { Empty, Head, NameLink, OutpointLink, Pager, PlainCard, Table, When, WithPrefixes } from './parts.js'
import { blockTimes, type Explorer, type MadePage, writePlace } from './reads.js'

const PAGE = 50

/** Names, latest mined first. A name and the prefixes that were mined on the way to it share a row. */
export function newestNamesPage(explorer: Explorer, after?: ListPlace): MadePage {
  const found = explorer.store.things.names({ limit: PAGE + 1, ...(after && { after }) })
  const { shown: names, end } = pageOf(found, PAGE)
  const timeOf = blockTimes(explorer, names)
  const rows = names.map(({ outpoint, ...rest }) => ({
    ...{ ...rest, outpoint: formatOutpoint(outpoint) },
    time: timeOf(rest.height),
  }))
  const next = end && `/names?after=${writePlace(end)}`
  return namesPage(explorer, { rows, order: 'newest', next, first: after && '/names' })
}

export function namesInOrderPage(
  explorer: Explorer,
  { prefix, after }: { prefix: string; after: string },
): MadePage {
  const { shown, end } = pageOf(explorer.store.names.byPrefix({ prefix, after, limit: PAGE + 1 }), PAGE)
  const rows = shown.map(({ name, outpoint }) => ({ name, outpoint: formatOutpoint(outpoint) }))
  const path = `/names?order=name&prefix=${prefix}`
  const next = end && `${path}&after=${end.name}`
  return namesPage(explorer, { rows, order: 'name', prefix, next, first: after === '' ? undefined : path })
}

function nothing(prefix: string, isCatchingUp: boolean): string {
  if (isCatchingUp) return prefix === '' ? 'No names found yet.' : `No names with ${prefix} found yet.`
  return prefix === '' ? 'There are no names here.' : `No name begins with ${prefix}.`
}

interface NameRow extends Partial<Pick<NameThing, 'prefixes' | 'isMore'>> {
  name: string
  outpoint: string
  height?: number | undefined
  time?: number | undefined
}

function namesPage(
  { site }: Explorer,
  list: {
    rows: NameRow[]
    order: 'newest' | 'name'
    prefix?: string
    next: string | undefined
    first: string | undefined
  },
): MadePage {
  const { rows, order, prefix = '', next, first } = list
  const html = renderPage({
    site,
    title: 'Names',
    description: 'Names that were mined, with their origins.',
    section: 'names',
    path: '/names',
    feeds: [{ href: '/feeds/names.atom', title: 'Newest names' }],
    children: (
      <>
        <Head
          title="Names"
          lede={site.catchingUp && 'This list is incomplete: not all names are found yet.'}
          actions={
            !site.catchingUp && (
              <a class="btn" href="/mine">
                Mine one
              </a>
            )
          }
        />
        <div class="stack close">
          <nav class="cluster" aria-label="Order">
            <a href="/names" aria-current={order === 'newest' ? 'true' : undefined}>
              Newest
            </a>
            <a href="/names?order=name" aria-current={order === 'name' && prefix === '' ? 'true' : undefined}>
              A to Z
            </a>
            {prefix !== '' && (
              <a href={`/names?order=name&prefix=${prefix}`} aria-current="true">
                {prefix}…
              </a>
            )}
            <a href={`/tree?prefix=${prefix}`}>As a tree</a>
          </nav>
          <PlainCard label="List of names">
            {rows.length === 0 ? (
              <Empty>{nothing(prefix, site.catchingUp !== undefined)}</Empty>
            ) : (
              <Table
                folds
                rows={rows}
                columns={[
                  {
                    head: 'Name',
                    cell: ({ name, ...folded }) => (
                      <span class="cluster">
                        <NameLink name={name} /> <WithPrefixes {...folded} />
                      </span>
                    ),
                  },
                  ...(order === 'newest' ? [MINED] : []),
                  {
                    head: 'Origin',
                    cell: ({ outpoint }) => <OutpointLink outpoint={outpoint} what="origin" />,
                  },
                ]}
              />
            )}
          </PlainCard>
          <Pager first={first} next={next} />
        </div>
      </>
    ),
  })
  return { html, dependsOn: [dependency.names] }
}

const MINED = {
  head: 'Mined',
  cell: ({ height, time }: NameRow) => (
    <span>
      <When height={height} time={time} />
    </span>
  ),
}
