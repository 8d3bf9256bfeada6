import type { ComponentChildren, VNode } from 'preact'
import { render } from './render.js'
import { count, shortOutpoint } from './text.js'

export interface Site {
  /** The network of its addresses, and whether it is a local one. */
  network: string
  genesis: string | undefined
  /** The zone and port of names as hosts, such as `localhost:8080`; undefined if names are no hosts here. */
  gatewayHost?: string | undefined
  namesPrefix: string
  gatewayPrefix: string
  version: string
  /** Present while the host follows the tree and has not caught up: names that it does not have may exist. */
  readonly catchingUp?: { height?: number | undefined; chainHeight?: number | undefined } | undefined
  /** The prefix of all paths of the service; empty at the root of its host. */
  path: string
  hasStatus: boolean
  hasImages: boolean
}

/** How far the host has come, for pages that are made for each request. */
export interface ChainView {
  height?: number | undefined
  lag?: number | undefined
}

export type Section = 'names' | 'tree' | 'inscriptions' | 'mine' | 'my' | 'api' | 'charts' | 'status'

export interface PageOptions {
  site: Site
  /** The title of the tab, without the name of the service. */
  title: string
  /** For search engines and previews of links: one sentence. */
  description?: string
  section?: Section
  path?: string
  /** Paths of scripts besides the one of all pages. */
  scripts?: readonly string[]
  /** Whether the page has no scripts, for places where none may run. */
  isStill?: boolean
  feeds?: readonly { href: string; title: string }[]
  /** Whether search engines should leave the page out. */
  isUnlisted?: boolean
  hasSearch?: boolean
  query?: string
  children: ComponentChildren
}

const NAVIGATION: [section: Section, href: string, text: string][] = [
  ['names', '/names', 'Names'],
  ['tree', '/tree', 'Tree'],
  ['inscriptions', '/inscriptions', 'Inscriptions'],
  ['mine', '/mine', 'Mine'],
  ['my', '/my', 'My names'],
  ['api', '/api', 'API'],
]

export function renderPage(options: PageOptions): string {
  const { site, children } = options
  const { catchingUp } = site
  const page = render(
    <html lang="en">
      <head>
        <Head {...options} />
      </head>
      <body>
        <Bar {...options} />
        {catchingUp && <CatchingUp {...catchingUp} hasStatus={site.hasStatus} />}
        <main id="main">{children}</main>
        <Foot {...options} />
      </body>
    </html>,
  )
  return below(site.path, `<!doctype html>${page}`)
}

/** An attribute with a path of this service. Text cannot match, as its quotation marks are escaped. */
const PATHS = / (href|src|action|data-names|data-gateway)="\/(?!\/)/g

/** A page with its paths, which are written from the root of the service, below another path. */
function below(path: string, html: string): string {
  return path === '' ? html : html.replace(PATHS, (_, attribute) => ` ${attribute}="${path}/`)
}

/** The placeholder for the block as of which a page is valid: the block changes while the page is cached. */
export const AS_OF = '<!--as-of-->'

export function asOfText({ height }: { height: number }): string {
  return `<span data-as-of>Names as of block ${count(height)}</span>`
}

/** A page for one request, with the block as of which it is valid. */
export function withAsOf(html: string, asOf: { height: number } | undefined): string {
  const at = html.lastIndexOf(AS_OF)
  return asOf === undefined || at < 0 ? html : html.slice(0, at) + asOfText(asOf) + html.slice(at)
}

function CatchingUp({
  height,
  chainHeight,
  hasStatus,
}: NonNullable<Site['catchingUp']> & Pick<Site, 'hasStatus'>): VNode {
  const reached = height === undefined ? '' : ` It has found names up to block ${count(height)}`
  const of = reached === '' || chainHeight === undefined ? '' : ` of ${count(chainHeight)}`
  return (
    <p class="notice" role="status">
      This host is still following the tree of names. Names that are missing here may exist, and nothing can
      be mined here yet.{reached + of === '' ? '' : `${reached}${of}.`}{' '}
      {hasStatus && <a href="/status">Status</a>}
    </p>
  )
}

function Bar({ site, section, query = '', hasSearch = false }: PageOptions): VNode {
  return (
    <>
      <a class="skip btn" href="#main">
        Skip to the content
      </a>
      <header class="bar cluster">
        <a class="mark" href="/">
          <Mark /> minetree
        </a>
        {!hasSearch && <SearchField site={site} query={query} isSmall />}
        <nav class="apart cluster" aria-label="Sections">
          {NAVIGATION.map(([each, href, text]) => (
            <a key={each} href={href} aria-current={each === section ? 'page' : undefined}>
              {text}
            </a>
          ))}
        </nav>
      </header>
    </>
  )
}

function Foot({ site, section }: PageOptions): VNode {
  const { network, genesis, version, hasStatus } = site
  return (
    <footer class="foot cluster">
      <span data-chain={hasStatus ? '' : undefined}>
        {network === 'local' ? 'A local network' : `The ${network} network`}
      </span>
      <span dangerouslySetInnerHTML={{ __html: AS_OF }} />
      <a href="/charts" aria-current={section === 'charts' ? 'page' : undefined}>
        Charts
      </a>
      {hasStatus && (
        <a href="/status" aria-current={section === 'status' ? 'page' : undefined}>
          Status
        </a>
      )}
      {genesis !== undefined && (
        <a href={`/tx/${genesis.split('_')[0]}`} title={genesis}>
          Genesis <code>{shortOutpoint(genesis)}</code>
        </a>
      )}
      <a href="/feeds/names.atom">Feed</a>
      <span class="apart">minetree {version}</span>
    </footer>
  )
}

function Head({ title, description, ...options }: PageOptions): VNode {
  const { path, scripts = [], isStill = false, feeds = [], isUnlisted = false } = options
  const summary = description ?? 'Names that are mined, and content that stays on the chain.'
  return (
    <>
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <meta name="color-scheme" content="light dark" />
      <meta name="theme-color" content="#fbfaf7" media="(prefers-color-scheme: light)" />
      <meta name="theme-color" content="#121512" media="(prefers-color-scheme: dark)" />
      <meta property="og:type" content="website" />
      <meta property="og:site_name" content="minetree" />
      <link rel="icon" href="/favicon.svg" type="image/svg+xml" />
      <link rel="stylesheet" href="/explorer/style.css" />
      <title>{title === 'minetree' ? title : `${title} · minetree`}</title>
      <meta name="description" content={summary} />
      <meta property="og:title" content={title} />
      <meta property="og:description" content={summary} />
      {isUnlisted && <meta name="robots" content="noindex" />}
      {path !== undefined && <link rel="canonical" href={path} />}
      {feeds.map((feed) => (
        <link key={feed.href} rel="alternate" type="application/atom+xml" {...feed} />
      ))}
      {!isStill &&
        ['/explorer/explorer.js', ...scripts].map((src) => <script key={src} type="module" src={src} />)}
    </>
  )
}

function Mark(): VNode {
  return (
    <svg class="bough" width="26" height="26" viewBox="0 0 26 26" aria-hidden="true" focusable="false">
      <path stroke-width="2" d="M13 23V14M13 14 6 8M13 14l7-6M6 8V4M20 8V4" />
      <circle cx="13" cy="14" r="2.6" />
      <circle cx="6" cy="8" r="2.2" />
      <circle cx="20" cy="8" r="2.2" />
      <circle cx="13" cy="23" r="2.4" />
    </svg>
  )
}

/** The favicon: the logo in a green that is visible on light and dark tabs. */
export const FAVICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 26 26"><path d="M13 23V14M13 14 6 8M13 14l7-6M6 8V4M20 8V4" fill="none" stroke="#2f8f5f" stroke-width="2"/><g fill="#2f8f5f"><circle cx="13" cy="14" r="2.6"/><circle cx="6" cy="8" r="2.2"/><circle cx="20" cy="8" r="2.2"/><circle cx="13" cy="23" r="2.4"/></g></svg>`

/** The search field. It works without the script, which suggests names. */
export function SearchField({
  site,
  query = '',
  isSmall = false,
}: {
  site: Pick<Site, 'gatewayPrefix'>
  query?: string
  isSmall?: boolean
}): VNode {
  return (
    <search>
      <form class="search" action="/search" method="get">
        <input
          type="search"
          name="q"
          value={query}
          data-gateway={site.gatewayPrefix}
          maxlength={255}
          autocomplete="off"
          autocapitalize="none"
          spellcheck={false}
          aria-label="A name, outpoint, transaction or address"
          placeholder={isSmall ? 'Search' : 'A name, outpoint, transaction or address'}
        />
        <button
          class={isSmall ? 'btn bare' : 'btn'}
          type="submit"
          aria-label={isSmall ? 'Search' : undefined}
        >
          {isSmall ? <Lens /> : 'Search'}
        </button>
      </form>
    </search>
  )
}

function Lens(): VNode {
  return (
    <svg width="18" height="18" viewBox="0 0 18 18" aria-hidden="true" focusable="false">
      <g fill="none" stroke="currentColor" stroke-width="1.8" stroke-linecap="round">
        <circle cx="7.5" cy="7.5" r="5" />
        <path d="m11.5 11.5 4.5 4.5" />
      </g>
    </svg>
  )
}
