import { dependency } from '../../backend/src/graph/dependencies.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import { type ChainView, renderPage, SearchField } from './page.js'
import { Card, Empty, NameLink, Stat, Tiles, When, WithPrefixes } from './parts.js'
import { blockTimes, contentViews, type Explorer, type MadePage, TILE_QUOTE } from './reads.js'
import { count } from './text.js'

const NEWEST = 8

/** Placeholders until a request fills in the state of the chain: pages are cached for longer than a height is valid. */
const HEIGHT = '<!--height-->'
const LAG = '<!--lag-->'

/** The first page, without the state of the chain: see {@link withChain}. */
export function homePage(explorer: Explorer): MadePage {
  const { store, site } = explorer
  const counts = store.listings.counts()
  const names = store.things.names({ limit: NEWEST })
  const outputs = store.things.inscriptions({ limit: NEWEST })
  const timeOf = blockTimes(explorer, names)
  const inscriptions = contentViews(explorer, outputs, { quoted: TILE_QUOTE })
  const newest = [names[0], outputs[0]].map((row) => (row ? formatOutpoint(row.outpoint) : '')).join(' ')
  const html = renderPage({
    site,
    title: 'minetree',
    path: '/',
    hasSearch: true,
    feeds: [
      { href: '/feeds/names.atom', title: 'Newest names' },
      { href: '/feeds/inscriptions.atom', title: 'Newest inscriptions' },
    ],
    children: (
      <>
        <section class="hero">
          <div class="stack">
            <h1>
              Names that are mined, <br />
              content that stays.
            </h1>
            <p class="lede">
              Every name here can be traced to one genesis output, and every byte to a transaction. Check it
              yourself, in this browser.
            </p>
            <SearchField site={site} />
          </div>
          <Bough />
        </section>
        <dl class="stats" id="counts" data-live={Object.values(counts).join(' ')}>
          <Stat noun={site.catchingUp ? 'names so far' : 'names'} value={count(counts.names)} />
          <Stat noun="inscriptions" value={count(counts.inscriptions)} />
          <Stat noun="transactions" value={count(counts.transactions)} />
          <div>
            <dt dangerouslySetInnerHTML={{ __html: LAG }} />
            <dd data-height dangerouslySetInnerHTML={{ __html: HEIGHT }} />
          </div>
        </dl>
        <div class="split late" id="newest" data-live={newest}>
          <Card title="Newest names" link={{ href: '/names', text: 'See all' }}>
            {names.length === 0 ? (
              <Empty>
                {site.catchingUp ? (
                  'No names found yet.'
                ) : (
                  <>
                    No names mined yet. <a href="/mine">Mine the first one</a>.
                  </>
                )}
              </Empty>
            ) : (
              <ol class="rows">
                {names.map(({ name, height, ...folded }) => (
                  <li key={name}>
                    <span class="cluster">
                      <NameLink name={name} /> <WithPrefixes {...folded} />
                    </span>
                    <small>
                      <When height={height} time={timeOf(height)} />
                    </small>
                  </li>
                ))}
              </ol>
            )}
          </Card>
          <Card title="Newest inscriptions" link={{ href: '/inscriptions', text: 'See all' }}>
            {inscriptions.length === 0 ? (
              <Empty>No inscriptions yet.</Empty>
            ) : (
              <Tiles contents={inscriptions} />
            )}
          </Card>
        </div>
      </>
    ),
  })
  return { html, dependsOn: [dependency.all] }
}

/** The first page with the state of the chain. */
export function withChain(html: string, { height, lag }: ChainView): string {
  return html
    .replace(HEIGHT, height === undefined ? '–' : count(height))
    .replace(LAG, lagText({ height, lag }))
}

function lagText({ height, lag }: ChainView): string {
  if (height === undefined) return 'block height, not known'
  if (lag === undefined) return 'block height'
  return lag === 0 ? 'block height, up to date' : `block height, ${count(lag)} behind`
}

function Bough() {
  return (
    <svg class="bough" width="300" height="300" viewBox="0 0 300 300" aria-hidden="true" focusable="false">
      <path stroke-width="9" d="M150 296V190" />
      <path stroke-width="7" d="M150 190 92 128M150 190l62-54" />
      <path stroke-width="5" d="M92 128 48 104M92 128l6-62M212 136l-16-60M212 136l48-22" />
      <path
        stroke-width="3"
        d="M48 104 22 72M48 104 16 122M98 66 72 32M98 66l28-40M196 76l-22-36M196 76l26-44M260 114l22-34M260 114l28 16"
      />
      <circle cx="150" cy="190" r="13" />
      <circle cx="92" cy="128" r="11" />
      <circle cx="212" cy="136" r="11" />
      <circle cx="48" cy="104" r="9" />
      <circle cx="98" cy="66" r="9" />
      <circle cx="196" cy="76" r="9" />
      <circle cx="260" cy="114" r="9" />
      {[
        [22, 72],
        [126, 26],
        [174, 40],
        [282, 80],
      ].map(([cx, cy]) => (
        <circle key={cx} cx={cx} cy={cy} r="7" />
      ))}
      {[
        [16, 122],
        [72, 32],
        [222, 32],
        [288, 130],
      ].map(([cx, cy]) => (
        <circle key={cx} class="pale" cx={cx} cy={cy} r="7" stroke-width="1.5" />
      ))}
    </svg>
  )
}
